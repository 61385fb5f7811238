// Package rooms says in words and as JSON what a server's log of rooms shows, and what it does not: about all its
// rooms, and about one that was audited. Package audit/roomlog reads and verifies the log.
package rooms

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/watch"
)

// Log is a log of rooms that was read and verified.
type Log struct {
	*roomlog.Published
	Address string // where it was read
	IsNamed bool   // its origin is its address, or its key was given
	Kept    uint64 // size of an earlier checkpoint that it continues; 0: none
}

// JSON is a log of rooms for programs.
type JSON struct {
	Address   string   `json:"address"`
	Origin    string   `json:"origin"`
	VKey      string   `json:"vkey"`
	Entries   uint64   `json:"entries"`
	Root      string   `json:"root"`
	Continues uint64   `json:"continues"` // size of the earlier checkpoint that it continues; 0: none
	Cosigners []string `json:"cosigners"` // names of those witnesses that were given
	Rooms     []Room   `json:"rooms"`
	NotProven []string `json:"not_proven"`
}

// Room is a room in a [JSON].
type Room struct {
	Entry     uint64 `json:"entry"` // index of its entry in the log of rooms
	Origin    string `json:"origin"`
	VKey      string `json:"vkey"`
	First     string `json:"first"`   // leaf hash of its first entry
	Created   int64  `json:"created"` // milliseconds since the Unix epoch
	Rehearsal bool   `json:"rehearsal"`
	Imported  bool   `json:"imported,omitempty"` // created and ended by another server
	Ended     int64  `json:"ended"`              // milliseconds since the Unix epoch; 0: not
	Lost      bool   `json:"lost,omitempty"`     // ended because entries are lost
	Entries   uint64 `json:"entries,omitempty"`  // at the end
	Root      string `json:"root,omitempty"`     // at the end
}

// JSON returns the log for programs.
func (l *Log) JSON() JSON {
	out := JSON{Address: l.Address, Origin: l.Head.Origin, VKey: l.VKey(), Entries: l.Head.Size,
		Root: l.Head.Root.String(), Continues: l.Kept, Cosigners: append([]string{}, l.Cosigners...),
		Rooms: []Room{}, NotProven: l.NotProven()}
	for _, r := range l.Rooms() {
		room := Room{Entry: r.Index, Origin: r.Origin, VKey: r.VKey, First: r.First.String(), Created: r.Created,
			Rehearsal: r.IsRehearsal, Imported: r.IsImported, Ended: r.Ended, Lost: r.IsLost, Entries: r.Size}
		if r.Ended != 0 {
			room.Root = r.Root.String()
		}
		out.Rooms = append(out.Rooms, room)
	}
	return out
}

// Proven lists what an intact log of rooms shows.
func (l *Log) Proven() []string {
	list := []string{fmt.Sprintf("The list above is the whole log: %s, signed by its key.",
		numeral.Count(l.Head.Size, "entry", "entries"))}
	if l.Kept > 0 {
		list = append(list, fmt.Sprintf("Nothing was removed or changed since your earlier check, which saw %s.",
			numeral.Count(l.Kept, "entry", "entries")))
	}
	if len(l.Cosigners) > 0 {
		list = append(list, fmt.Sprintf("Everyone who trusts %s sees this log: it signs only one.",
			strings.Join(l.Cosigners, " or ")))
	}
	return append(list, "A room of this server that is missing here is proof against the operator: "+
		"its receipts name an origin that the log does not have.")
}

// NotProven lists what an intact log of rooms does not show.
func (l *Log) NotProven() []string {
	list := []string{"That the operator has no other rooms: another server, or another address, has another log.",
		"Why a room was created or ended: names are the operator's choice, and so is the word rehearsal.",
		"When a room was created, more exactly than between two checkpoints with cosignatures: the times are the operator's."}
	if len(l.Cosigners) == 0 {
		list = append(list, "That all people see the same log: no witness that you named has signed this checkpoint.")
	}
	if l.Kept == 0 {
		list = append(list, "That nothing was removed before this check: you have no earlier checkpoint of this log.")
	}
	if !l.IsNamed {
		list = append(list, fmt.Sprintf("That this is the log of %s: it calls itself %s. Give its key with --vkey.",
			l.Address, l.Head.Origin))
	}
	return list
}

// Words says when a room was created and what became of it.
func Words(r *roomlog.Listed) string {
	text := "created " + moment(r.Created)
	switch {
	case r.IsImported && r.IsLost:
		return "taken over from another server " + moment(r.Created) +
			", which had given it up because entries were lost: " +
			numeral.Count(r.Size, "entry", "entries") + " are left"
	case r.IsImported:
		return "taken over from another server " + moment(r.Created) + ", which had ended it with " +
			numeral.Count(r.Size, "entry", "entries")
	case r.IsRehearsal:
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
	Listed   findings.ID = "listed"   // the room is in the log of rooms
	Unlisted findings.ID = "unlisted" // the log of rooms contradicts the room, or is wrong
)

// Audited is a room that passed its audit.
type Audited struct {
	Source     verifier.Source
	Origin     string
	Checkpoint []byte // signed
	IsEnded    bool
}

// Judge compares an audited room with its entry in the log. An error means that the room could not be read again.
func (l *Log) Judge(ctx context.Context, room Audited) (findings.Finding, error) {
	r := l.Of(room.Origin)
	why, err := contradiction(ctx, r, room)
	if err != nil {
		return findings.Finding{}, fmt.Errorf("read the room again: %w", err)
	}
	if why == "" {
		return l.listing(r, room.IsEnded), nil
	}
	text := fmt.Sprintf("%s The log is %s, signed, with %s. A server stores a room and its entry together, and writes "+
		"its end at once: this room was created past the log, or one of the two was changed.", why, l.Head.Origin,
		numeral.Count(l.Head.Size, "entry", "entries"))
	return findings.Finding{ID: Unlisted, Title: "The server's log of rooms contradicts this room", Text: text,
		Items: []findings.Item{}}, nil
}

// Wrong is the finding about a log that is wrong itself.
func Wrong(address string, err error) findings.Finding {
	return findings.Finding{ID: Unlisted, Title: "The server's log of rooms is wrong",
		Text:  fmt.Sprintf("Nothing in it counts: %v. To read it again: proofline-verify rooms %s", err, address),
		Items: []findings.Item{}}
}

// listing says that a room is in the log, and which others might have been tries.
func (l *Log) listing(r *roomlog.Listed, isEnded bool) findings.Finding {
	f := findings.Finding{ID: Listed, Title: "This room is in its server's log of rooms", Items: []findings.Item{}}
	alike, open := l.Alike(r.Origin), uint64(0)
	for _, other := range l.Rooms() {
		if other.Ended == 0 && other != r {
			open++
		}
	}
	f.Text = fmt.Sprintf("Entry %s of %s in %s has its key and its first entry, which all entries of that log together prove. It was %s. ",
		numeral.Group(r.Index), numeral.Group(l.Head.Size), l.Head.Origin, Words(r))
	if r.IsImported {
		f.Text += "Whether it was one of several tries is in the log of rooms of that server, whose name the room has. "
	}
	if isEnded && r.Ended == 0 {
		f.Text += "Its transcript has ended, and the log does not say so: an end follows within seconds. "
	}
	f.Text += fmt.Sprintf("The log has %s; %s a name like this one's, and %s not ended. "+
		"To see all: proofline-verify rooms %s", numeral.Count(uint64(len(l.Rooms())-1), "other room", "other rooms"),
		numeral.Count(uint64(len(alike)), "has", "have"), numeral.Count(open, "has", "have"), l.Address)
	f.Count = uint64(len(alike))
	for _, other := range alike[:min(len(alike), maxAlike)] {
		f.Items = append(f.Items, findings.Item{Entry: other.Index, Time: fairness.Time(other.Created),
			Kind: string(kindOf(other)), Text: other.Origin + ", " + endedWords(other)})
	}
	return f
}

// maxAlike is the maximum number of rooms listed that have a similar name.
const maxAlike = 100

func kindOf(r *roomlog.Listed) roomlog.Kind {
	switch {
	case r.IsRehearsal:
		return roomlog.Rehearsal
	case r.IsImported:
		return roomlog.Import
	}
	return roomlog.Room
}

// contradiction says how the log of rooms contradicts an audited room; "" if it does not.
func contradiction(ctx context.Context, r *roomlog.Listed, room Audited) (string, error) {
	if r == nil {
		return "The log does not have this room.", nil
	}
	head, err := verifier.Unverified(room.Checkpoint)
	if err != nil {
		return "", err
	}
	first, err := watch.FirstEntry(ctx, room.Source, room.Checkpoint)
	if err != nil {
		return "", err
	}
	switch {
	case !isSigned(room.Checkpoint, r.VKey):
		return "The log has a room with this address and another key.", nil
	case audit.LeafHash(first) != r.First:
		return "The log has a room with this address and key, and another first entry.", nil
	}
	if late := r.Created - created(first); late > maxLate && !r.IsImported {
		return fmt.Sprintf("The log has had this room since %s, and its first entry says %s: the room was there before.",
			moment(r.Created), moment(created(first))), nil
	}
	switch isShort := r.Size > head.Size && !room.IsEnded; { // the room ended after this checkpoint
	case r.Ended == 0 || isShort:
		return "", nil
	case !room.IsEnded && !r.IsLost:
		return fmt.Sprintf("The log says that the room ended with %s, but its transcript of %s has no end.",
			numeral.Count(r.Size, "entry", "entries"), numeral.Count(head.Size, "entry", "entries")), nil
	case r.IsLost && (r.Size != head.Size || r.Root != head.Root):
		return fmt.Sprintf("The log says that entries are lost, and that %s with the root %v are left, but the transcript has %s "+
			"and the root %v.", numeral.Count(r.Size, "entry", "entries"), r.Root,
			numeral.Count(head.Size, "entry", "entries"), head.Root), nil
	case r.Size != head.Size || r.Root != head.Root:
		return fmt.Sprintf("The log says that the room ended with %s and the root %v, but its transcript has %s "+
			"and the root %v.", numeral.Count(r.Size, "entry", "entries"), r.Root,
			numeral.Count(head.Size, "entry", "entries"), head.Root), nil
	}
	return "", nil
}

// maxLate is how much later than its first entry a room may be in the log, in milliseconds. A server stores both in one
// transaction, which takes no longer.
const maxLate = 30_000

// created returns the time of a room's first entry, in milliseconds since the Unix epoch. The audit has accepted it.
func created(first []byte) int64 {
	if e, err := fairness.ParseEntry(first); err == nil {
		if room, ok := e.(*fairness.Room); ok {
			return int64(room.Created)
		}
	}
	return 0
}

// isSigned reports whether a key has signed a checkpoint.
func isSigned(signed []byte, vkey string) bool {
	key, err := audit.ParseKey(vkey)
	if err == nil {
		_, _, err = audit.OpenCheckpoint(signed, key)
	}
	return err == nil
}
