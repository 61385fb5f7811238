package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
	"github.com/proofline/proofline/verifier/watch"
)

// registerJSON is the output of rooms --json.
type registerJSON struct {
	Address   string       `json:"address"`
	Origin    string       `json:"origin"`
	VKey      string       `json:"vkey"`
	Entries   uint64       `json:"entries"`
	Root      string       `json:"root"`
	Continues uint64       `json:"continues"` // size of the earlier checkpoint that it continues; 0: none
	Cosigners []string     `json:"cosigners"` // names of those witnesses that were given
	Rooms     []listedJSON `json:"rooms"`
	NotProven []string     `json:"not_proven"`
}

type listedJSON struct {
	Entry     uint64 `json:"entry"` // index of its entry in the log of rooms
	Origin    string `json:"origin"`
	VKey      string `json:"vkey"`
	First     string `json:"first"`   // leaf hash of its first entry
	Created   int64  `json:"created"` // milliseconds since the Unix epoch
	Rehearsal bool   `json:"rehearsal"`
	Ended     int64  `json:"ended"`             // milliseconds since the Unix epoch; 0: not
	Lost      bool   `json:"lost,omitempty"`    // ended because entries are lost
	Entries   uint64 `json:"entries,omitempty"` // at the end
	Root      string `json:"root,omitempty"`    // at the end
}

func (g *register) json() registerJSON {
	out := registerJSON{Address: g.address, Origin: g.Head.Origin, VKey: g.VKey(), Entries: g.Head.Size,
		Root: g.Head.Root.String(), Continues: g.kept, Cosigners: append([]string{}, g.Cosigners...),
		Rooms: []listedJSON{}, NotProven: g.notProven()}
	for _, r := range g.Rooms() {
		l := listedJSON{Entry: r.Index, Origin: r.Origin, VKey: r.VKey, First: r.First.String(), Created: r.Created,
			Rehearsal: r.IsRehearsal, Ended: r.Ended, Lost: r.IsLost, Entries: r.Size}
		if r.Ended != 0 {
			l.Root = r.Root.String()
		}
		out.Rooms = append(out.Rooms, l)
	}
	return out
}

// proven lists what an intact log of rooms shows.
func (g *register) proven() []string {
	list := []string{fmt.Sprintf("The list above is the whole log: %s, signed by its key.",
		numeral.Count(g.Head.Size, "entry", "entries"))}
	if g.kept > 0 {
		list = append(list, fmt.Sprintf("Nothing was removed or changed since your earlier check, which saw %s.",
			numeral.Count(g.kept, "entry", "entries")))
	}
	if len(g.Cosigners) > 0 {
		list = append(list, fmt.Sprintf("Everyone who trusts %s sees this log: it signs only one.",
			strings.Join(g.Cosigners, " or ")))
	}
	return append(list, "A room of this server that is missing here is proof against the operator: "+
		"its receipts name an origin that the log does not have.")
}

// notProven lists what an intact log of rooms does not show.
func (g *register) notProven() []string {
	list := []string{"That the operator has no other rooms: another server, or another address, has another log.",
		"Why a room was created or ended: names are the operator's choice, and so is the word rehearsal.",
		"When a room was created, more exactly than between two checkpoints with cosignatures: the times are the operator's."}
	if len(g.Cosigners) == 0 {
		list = append(list, "That all people see the same log: no witness that you named has signed this checkpoint.")
	}
	if g.kept == 0 {
		list = append(list, "That nothing was removed before this check: you have no earlier checkpoint of this log.")
	}
	if !g.isNamed {
		list = append(list, fmt.Sprintf("That this is the log of %s: it calls itself %s. Give its key with --vkey.",
			printable(g.address), printable(g.Head.Origin)))
	}
	return list
}

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
	fmt.Fprintf(&b, "  witness  %d of the %d that you named have signed this checkpoint\n\nRooms\n", len(g.Cosigners), trusted)
	for _, r := range g.Rooms() {
		printItem(&b, fmt.Sprintf("  %4d ", r.Index), printable(r.Origin), plain)
		printItem(&b, "       ", createdWords(r), plain)
	}
	b.WriteString("\nProven\n")
	for _, text := range g.proven() {
		printItem(&b, "   - ", text, plain)
	}
	b.WriteString("\nNot proven\n")
	for _, text := range g.notProven() {
		printItem(&b, "   - ", text, plain)
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}

// createdWords says when a room was created and what became of it.
func createdWords(r *roomlog.Listed) string {
	text := "created " + moment(r.Created)
	if r.IsRehearsal {
		text += " as a rehearsal"
	}
	return text + ", " + endedWords(r)
}

func endedWords(r *roomlog.Listed) string {
	entries := numeral.Count(r.Size, "entry", "entries")
	switch {
	case r.Ended == 0:
		return "not ended"
	case r.IsLost:
		return "given up " + moment(r.Ended) + " because entries were lost: " + entries + " are left"
	}
	return "ended " + moment(r.Ended) + " with " + entries
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// Findings about the log of rooms.
const (
	listed   findings.ID = "listed"   // the room is in the log of rooms
	unlisted findings.ID = "unlisted" // the log of rooms contradicts the room, or is wrong
)

// noTry begins what is not proven about a room whose server's log of rooms could not be used.
const noTry = "That this room was not one of several tries: "

// lookUp looks for an audited room in the log of rooms of its server, and adds to the report what it says. It does
// not change the verdict, which is about the room's own transcript; isEnded reports whether that has ended.
func lookUp(ctx context.Context, arg string, src verifier.Source, trust verifier.Trust, isEnded bool, done *report.Audit) {
	address, isRoom := registerAddress(arg)
	if !done.Report.OK {
		return // what it says about itself does not hold
	}
	if !isRoom {
		done.Report.NotProven = append(done.Report.NotProven,
			noTry+"the log of rooms is read only in an audit of the room's address, which ends in /r/NAME.")
		return
	}
	g, err := readRegister(ctx, address, "", known(trust), func(string) ([]byte, error) { return nil, nil })
	switch {
	case isWrong(err):
		done.Findings = append(done.Findings, findings.Finding{ID: unlisted, Title: "The server's log of rooms is wrong",
			Text:  fmt.Sprintf("Nothing in it counts: %s. To read it again: proofline-verify rooms %s", printable(err.Error()), address),
			Items: []findings.Item{}})
	case errors.Is(err, fs.ErrNotExist):
		done.Report.NotProven = append(done.Report.NotProven, noTry+"the server publishes no log of rooms.")
	case err != nil:
		done.Report.NotProven = append(done.Report.NotProven,
			noTry+"the server's log of rooms could not be read: "+printable(err.Error()))
	default:
		g.judge(ctx, src, isEnded, done)
	}
}

// judge compares an audited room with its entry in the log.
func (g *register) judge(ctx context.Context, src verifier.Source, isEnded bool, done *report.Audit) {
	f := findings.Finding{ID: unlisted, Items: []findings.Item{}}
	r := g.Of(done.Report.Origin)
	if why := contradiction(ctx, src, r, isEnded, done); why != "" {
		f.Title = "The server's log of rooms contradicts this room"
		f.Text = fmt.Sprintf("%s The log is %s, signed, with %s. A server stores a room and its entry together: "+
			"this room was created past the log, or the log was replaced.", why, printable(g.Head.Origin), numeral.Count(g.Head.Size, "entry", "entries"))
	} else {
		f = g.listing(r)
	}
	done.Findings = append(done.Findings, f)
	if len(g.Cosigners) == 0 {
		done.Report.NotProven = append(done.Report.NotProven,
			"That all people see the same log of rooms: no witness that you know has signed its checkpoint.")
	}
}

// listing says that a room is in the log, and which others might have been tries.
func (g *register) listing(r *roomlog.Listed) findings.Finding {
	f := findings.Finding{ID: listed, Title: "This room is in its server's log of rooms", Items: []findings.Item{}}
	alike, open := g.Alike(r.Origin), uint64(0)
	for _, other := range g.Rooms() {
		if other.Ended == 0 && other != r {
			open++
		}
	}
	f.Text = fmt.Sprintf("Entry %s of %s in %s has its key and its first entry, which all entries of that log together prove. It was %s. ",
		numeral.Group(r.Index), numeral.Group(g.Head.Size), printable(g.Head.Origin), createdWords(r))
	f.Text += fmt.Sprintf("The log has %s; %s a name like this one's, and %s not ended. "+
		"To see all: proofline-verify rooms %s", numeral.Count(uint64(len(g.Rooms())-1), "other room", "other rooms"),
		numeral.Count(uint64(len(alike)), "has", "have"), numeral.Count(open, "has", "have"), g.address)
	f.Count = uint64(len(alike))
	for _, other := range alike[:min(len(alike), maxAlike)] {
		f.Items = append(f.Items, findings.Item{Entry: other.Index, Time: fairness.Time(other.Created),
			Kind: string(kindOf(other)), Text: printable(other.Origin) + ", " + endedWords(other)})
	}
	return f
}

// maxAlike is the maximum number of rooms listed that have a similar name.
const maxAlike = 100

func kindOf(r *roomlog.Listed) roomlog.Kind {
	if r.IsRehearsal {
		return roomlog.Rehearsal
	}
	return roomlog.Room
}

// contradiction says how the log of rooms contradicts an audited room; "" if it does not.
func contradiction(ctx context.Context, src verifier.Source, r *roomlog.Listed, isEnded bool, done *report.Audit) string {
	if r == nil {
		return "The log does not have this room."
	}
	head, errHead := verifier.Unverified(done.Checkpoint)
	first, errFirst := watch.FirstEntry(ctx, src, done.Checkpoint)
	if err := errors.Join(errHead, errFirst); err != nil {
		return "The first entry of this room could not be read again: " + printable(err.Error()) + "."
	}
	key, err := audit.ParseKey(r.VKey)
	if err == nil {
		_, _, err = audit.OpenCheckpoint(done.Checkpoint, key)
	}
	switch {
	case err != nil:
		return "The log has a room with this address and another key."
	case audit.LeafHash(first) != r.First:
		return "The log has a room with this address and key, and another first entry."
	case r.Ended != 0 && r.Size > head.Size && !isEnded: // it ended after this checkpoint
		return ""
	case r.Ended != 0 && !r.IsLost && (r.Size != head.Size || r.Root != head.Root):
		return fmt.Sprintf("The log says that the room ended with %s and the root %v, but its transcript has %s and the root %v.",
			numeral.Count(r.Size, "entry", "entries"), r.Root, numeral.Count(head.Size, "entry", "entries"), head.Root)
	}
	return ""
}
