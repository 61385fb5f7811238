package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
	"github.com/proofline/proofline/verifier/rooms"
)

// printRegister prints a log of rooms; trusted is the number of witnesses that were given.
func (t *terminal) printRegister(g *register, trusted int) error {
	var b strings.Builder
	colour := t.colour()
	plain := func(s string) string { return s }
	fmt.Fprintf(&b, "%s\n\n", colour(green, "✓ INTACT: the log of rooms is signed, complete and in order"))
	fmt.Fprintf(&b, "  log      %s\n  key      %s\n", printable(g.Head.Origin), printable(g.VKey()))
	open, rehearsals := uint64(0), uint64(0)
	for _, r := range g.Rooms() {
		if r.Ended == 0 {
			open++
		}
		if r.IsRehearsal {
			rehearsals++
		}
	}
	fmt.Fprintf(&b, "  read     %s: %s, of which %s called a rehearsal and %s not ended\n",
		numeral.Count(g.Head.Size, "entry", "entries"), numeral.Count(uint64(len(g.Rooms())), "room", "rooms"),
		numeral.Count(rehearsals, "was", "were"), numeral.Count(open, "has", "have"))
	fmt.Fprintf(&b, "  witness  %d of the %d that you named have signed this checkpoint\n\nRooms, by their entry; the end of a room is an entry, too\n", len(g.Cosigners), trusted)
	for _, r := range g.Rooms() {
		printItem(&b, fmt.Sprintf("  %4d ", r.Index), printable(r.Origin), plain)
		printItem(&b, "       ", printable(rooms.Words(r)), plain)
	}
	b.WriteString("\nProven\n")
	for _, text := range g.Proven() {
		printItem(&b, "   - ", printable(text), plain)
	}
	b.WriteString("\nNot proven\n")
	for _, text := range g.NotProven() {
		printItem(&b, "   - ", printable(text), plain)
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}

// registerTime is the time to read a log of rooms in: one that never ends must not keep an audit from its verdict.
const registerTime = 2 * time.Minute

// noTry begins what is not proven about a room whose server's log of rooms could not be used.
const noTry = "That this room was not one of several tries: "

// lookUp looks for a room, which the audit has read, in the log of rooms of its server, and adds to the report what
// that says. It does not change the verdict, which is about the room's own transcript.
func (f *auditFlags) lookUp(ctx context.Context, t *terminal, arg string, room rooms.Audited, done *report.Audit) {
	address, isRoom := registerAddress(arg)
	if !done.Report.OK {
		return // what it says about itself does not hold
	}
	if !isRoom {
		done.Report.NotProven = append(done.Report.NotProven,
			noTry+"the log of rooms is read only in an audit of the room's address, which ends in /r/NAME.")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	var keeper *keeper
	g, err := readRegister(ctx, address, "", known(done.Trust), func(origin string) ([]byte, error) {
		keeper = newKeeper(&auditFlags{state: f.state, noKeep: f.noKeep}, t, origin)
		return keeper.load()
	})
	if err == nil && g.IsNamed { // otherwise it would be compared with the real log of that name
		keeper.save(g.signed)
	}
	var found findings.Finding
	if err == nil {
		found, err = g.Judge(ctx, room)
	} else if isWrong(err) {
		found, err = rooms.Wrong(address, err), nil
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		done.Report.NotProven = append(done.Report.NotProven, noTry+"the server publishes no log of rooms.")
		return
	case err != nil:
		done.Report.NotProven = append(done.Report.NotProven,
			noTry+"the server's log of rooms could not be read: "+printable(err.Error()))
		return
	}
	found.Text = printable(found.Text)
	for i := range found.Items {
		found.Items[i].Text = printable(found.Items[i].Text)
	}
	done.Findings = append(done.Findings, found)
	if g != nil && !g.IsNamed {
		done.Report.NotProven = append(done.Report.NotProven, fmt.Sprintf(
			"That this is the log of rooms of %s: it calls itself %s.", address, printable(g.Head.Origin)))
	}
	if g == nil || len(g.Cosigners) == 0 {
		done.Report.NotProven = append(done.Report.NotProven,
			"That all people see the same log of rooms: no witness that you know has signed its checkpoint.")
	}
}
