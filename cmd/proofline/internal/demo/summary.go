package demo

import "github.com/proofline/proofline/verifier/numeral"

// summarize says what happened, and what to try next.
func (d *demo) summarize() {
	p := d.Narrator.Print
	joins, peak := d.seen.joined()
	absent := d.having(absent)
	p("\nWhat happened\n")
	p("  visitors    %s joined over HTTP, %s in the busiest second; %s of them joined twice and got one place\n",
		numeral.Group(joins), numeral.Group(peak), numeral.Group(d.having(twice)))
	p("  windows     %d, each frozen, signed by two witnesses, and then drawn with a beacon's round that did not exist before\n", d.windows)
	p("  admitted    %s, each with a pass\n", numeral.Group(joins-absent))
	p("  no-shows    %s were skipped; %s others were called sooner for it, so that the outflow held\n", numeral.Group(absent), numeral.Group(d.inStead))
	sold := len(d.front.shop.Sold())
	p("  shop        %s of them came from the shop and were led back to it; each bought a seat, and the next one was let in\n", numeral.Group(sold))
	p("  refused     %s requests: too early, too late, malformed, with a wrong secret, past the line; none left a trace\n", numeral.Group(d.seen.refused))
	p("  transcript  %s entries, and in it every one of the %s receipts\n", numeral.Group(d.size), numeral.Group(joins))
	if n := d.seen.count(); n > 0 {
		p("\n✗ %d times something was not as it must be, see above.\n", n)
	} else {
		p("\n✓ Everything was as it must be.\n")
	}
	if d.Keep {
		p("\nLook around\n")
		p("  %s/state\n  %s/checkpoint\n", d.room.URL, d.room.URL)
		p("  proofline-verify audit %s\n", d.room.URL)
		p("  proofline room list --server %s --data %s\n", d.server.URL, d.dir)
		return
	}
	p("\nTry next\n")
	p("  proofline demo --keep        the same, and the server stays for you to look around\n")
	p("  proofline demo --shop        the shop stays open for your browser: wait in line, and buy\n")
	p("  proofline serve              a server of your own\n")
	p("  proofline room create --help what a room can be\n")
}
