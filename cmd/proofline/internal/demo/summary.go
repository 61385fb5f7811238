package demo

import "github.com/proofline/proofline/verifier/numeral"

// summarize prints what happened, and what to try next.
func (d *demo) summarize(s *sale, i *inspector) {
	p := d.Narrator.Print
	joins, peak := d.checks.joined()
	absent := len(s.crowd.with(absent))
	p("\nWhat happened\n")
	p("  visitors    %s joined over HTTP, %s in the busiest second; %s of them joined twice and kept their one place\n",
		numeral.Group(joins), numeral.Group(peak), numeral.Group(len(s.crowd.with(twice))))
	p("  windows     %d, each frozen, cosigned by two witnesses, and then drawn with a later round of the beacon\n",
		i.windows)
	p("  admitted    %s, each with a pass\n", numeral.Group(joins-absent))
	p("  no-shows    %s were skipped; %s others were called in their place to keep up the outflow\n",
		numeral.Group(absent), numeral.Group(i.replacements))
	p("  shop        %s visitors came from the shop and returned to it with a pass; each bought a seat and made room\n",
		numeral.Group(len(d.front.shop.Sold())))
	p("  refused     %s requests: too early, too late, malformed, with a wrong secret, past the line; "+
		"none left an entry\n",
		numeral.Group(d.checks.refusals()))
	p("  transcript  %s entries, with the arrivals of all %s receipts\n", numeral.Group(s.size), numeral.Group(joins))
	if n := d.checks.failures(); n > 0 {
		p("\n✗ %d checks failed, see above.\n", n)
	} else {
		p("\n✓ Everything was as expected.\n")
	}
	if d.Keep {
		p("\nLook around\n")
		p("  %s/state\n  %s/checkpoint\n", d.room.URL, d.room.URL)
		p("  proofline-verify audit %s\n", d.room.URL)
		p("  proofline room list --server %s --data %s\n", d.server.URL, d.dir)
		return
	}
	p("\nTry next\n")
	p("  proofline demo --keep        the same, but the server keeps running for you to look around\n")
	p("  proofline demo --shop        open the shop for your browser: wait in line, and buy\n")
	p("  proofline serve              run a server of your own\n")
	p("  proofline room create --help see how to configure a room\n")
}
