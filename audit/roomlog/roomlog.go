// Package roomlog reads and writes the entries of a server's log of rooms, which FORMAT.md specifies in section 13.
// The log has an entry for each room that the server created or took over, and one for its end. So an operator who
// dislikes a draw cannot throw the room away and start another without leaving a trace.
//
//	server:  Entry.Append ─► audit/pglog        auditor:  Read ─► List.Add ─► Listed
//
// Both apply the same rules, those of [List.Add].
package roomlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

// Path is the path of the log below the server's address.
const Path = "rooms"

// ErrEntry is returned for an entry that is malformed, or that the rules refuse.
var ErrEntry = errors.New("not an entry of a log of rooms")

// Kind is the kind of an entry: its first word.
type Kind string

// The kinds of entries.
const (
	Begin     Kind = "rooms"     // the log begins
	Room      Kind = "room"      // a room was created
	Rehearsal Kind = "rehearsal" // a room was created that the operator called a rehearsal then
	Import    Kind = "import"    // a room was taken over from another server, which ended it; its end follows at once
	End       Kind = "end"       // a room has ended
	Lost      Kind = "lost"      // the operator ended a room because part of its transcript is lost
)

// begins reports whether an entry of the kind is the first of a room.
func (k Kind) begins() bool { return k == Room || k == Rehearsal || k == Import }

// version is the version of the format in the first entry.
const version = "1"

// maxTime is the largest time of an entry, as in transcripts.
const maxTime = 1<<53 - 2

// maxOrigin is the maximum length of an origin, as in policies.
const maxOrigin = 255

// minEnded is the minimum size of the transcript of a room that ended: its first entry, and its end.
const minEnded = 2

// Entry is an entry of the log.
type Entry struct {
	Kind Kind
	Time int64 // milliseconds since the Unix epoch
	// VKey is the key of this log (Begin), or of the room's (Room, Rehearsal, Import).
	VKey string
	// Room is the index of the room's entry in this log (End, Lost).
	Room uint64
	// Size and Root are those of the room's transcript: with its first entry alone (Room, Rehearsal, Import,
	// where Size is 1), or at its end.
	Size uint64
	Root audit.Hash
}

// Append appends the text of the entry to dst.
func (e Entry) Append(dst []byte) []byte {
	word := func(text string) { dst = append(append(dst, ' '), text...) }
	dst = append(dst, e.Kind...)
	if e.Kind == Begin {
		word(version)
	}
	word(strconv.FormatInt(e.Time, 10))
	switch {
	case e.Kind == Begin:
		word(e.VKey)
		return dst
	case e.Kind.begins():
		word(e.VKey)
	default:
		word(strconv.FormatUint(e.Room, 10))
		word(strconv.FormatUint(e.Size, 10))
	}
	word(e.Root.String())
	return dst
}

// Parse reads the output of [Entry.Append], and returns [ErrEntry] for anything else.
func Parse(text []byte) (Entry, error) {
	words := strings.Split(string(text), " ")
	e := Entry{Kind: Kind(words[0])}
	var errTime, errKey, errRoom, errSize, errRoot error
	at := 1
	if e.Kind == Begin {
		at = 2
	}
	if len(words) <= at {
		return e, fmt.Errorf("%w: %.80q", ErrEntry, text)
	}
	e.Time, errTime = strconv.ParseInt(words[at], 10, 64)
	fields := words[at+1:]
	switch {
	case e.Kind == Begin && len(fields) == 1:
		_, errKey = audit.ParseKey(fields[0])
		e.VKey = fields[0]
	case e.Kind.begins() && len(fields) == 2:
		_, errKey = audit.ParseKey(fields[0])
		e.VKey, e.Size = fields[0], 1
		e.Root, errRoot = tlog.ParseHash(fields[1])
	case (e.Kind == End || e.Kind == Lost) && len(fields) == 3:
		e.Room, errRoom = strconv.ParseUint(fields[0], 10, 64)
		e.Size, errSize = strconv.ParseUint(fields[1], 10, 64)
		e.Root, errRoot = tlog.ParseHash(fields[2])
	default:
		return e, fmt.Errorf("%w: %.80q", ErrEntry, text)
	}
	if err := errors.Join(errTime, errKey, errRoom, errSize, errRoot); err != nil {
		return e, fmt.Errorf("%w: %.80q: %w", ErrEntry, text, err)
	}
	if e.Time < 1 || e.Time > maxTime || e.Size > audit.MaxSize || len(nameOf(e.VKey)) > maxOrigin ||
		!isPrintable(text) || string(e.Append(nil)) != string(text) {
		return e, fmt.Errorf("%w: %.80q", ErrEntry, text)
	}
	return e, nil
}

// isPrintable reports whether a text is printable ASCII: other letters can look like those of another name.
func isPrintable(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// Listed is a room in the log.
type Listed struct {
	Index       uint64 // of its entry in the log
	Origin      string
	VKey        string     // verifies the checkpoints of the room
	Created     int64      // of its entry in the log, in milliseconds since the Unix epoch
	First       audit.Hash // leaf hash of its first entry, which is the root of a transcript of one entry
	IsRehearsal bool       // the operator called it a rehearsal when it was created
	IsImported  bool       // another server created and ended it

	Ended  int64  // milliseconds since the Unix epoch; 0: the log has no end of it
	IsLost bool   // part of its transcript is lost
	Size   uint64 // of the transcript at its end
	Root   audit.Hash
}

// List is what a log of rooms says. The zero value is the empty log. It is not safe for concurrent use.
type List struct {
	vkey     string
	size     uint64
	time     int64
	rooms    []*Listed
	byIndex  map[uint64]*Listed
	byOrigin map[string]*Listed
}

// VKey returns the key of the log in its first entry; "" for the empty log.
func (l *List) VKey() string { return l.vkey }

// Size returns the number of entries.
func (l *List) Size() uint64 { return l.size }

// Rooms returns the rooms in the order of their creation.
func (l *List) Rooms() []*Listed { return l.rooms }

// Of returns the room with the origin; nil if the log does not have it.
func (l *List) Of(origin string) *Listed { return l.byOrigin[origin] }

// Add applies the next entry, or returns [ErrEntry] and changes nothing.
func (l *List) Add(text []byte) error {
	e, err := Parse(text)
	if err == nil {
		err = l.refusal(e)
	}
	if err != nil {
		return fmt.Errorf("entry %d: %w", l.size, err)
	}
	switch {
	case e.Kind == Begin:
		l.vkey, l.byIndex, l.byOrigin = e.VKey, map[uint64]*Listed{}, map[string]*Listed{}
	case e.Kind.begins():
		r := &Listed{Index: l.size, Origin: nameOf(e.VKey), VKey: e.VKey, Created: e.Time, First: e.Root,
			IsRehearsal: e.Kind == Rehearsal, IsImported: e.Kind == Import}
		l.rooms = append(l.rooms, r)
		l.byIndex[r.Index], l.byOrigin[r.Origin] = r, r
	default:
		r := l.byIndex[e.Room]
		r.Ended, r.IsLost, r.Size, r.Root = e.Time, e.Kind == Lost, e.Size, e.Root
	}
	l.size++
	l.time = e.Time
	return nil
}

// refusal returns the error for an entry that must not come next; nil if it may.
func (l *List) refusal(e Entry) error {
	refuse := func(why string) error { return fmt.Errorf("%w: %s", ErrEntry, why) }
	if (l.size == 0) != (e.Kind == Begin) {
		return refuse("the first entry, and no other, begins the log")
	}
	if e.Time < l.time {
		return refuse("its time is before that of the entry before it")
	}
	if n := len(l.rooms); n > 0 && l.rooms[n-1].IsImported && l.rooms[n-1].Ended == 0 &&
		(e.Room != l.rooms[n-1].Index || e.Kind != End && e.Kind != Lost) {
		return refuse("the end of a room that was taken over follows at once")
	}
	switch e.Kind {
	case Room, Rehearsal, Import:
		if l.byOrigin[nameOf(e.VKey)] != nil {
			return refuse("the log already has a room with the origin " + nameOf(e.VKey))
		}
	case End, Lost:
		r := l.byIndex[e.Room]
		if r == nil || r.Ended != 0 {
			return refuse("it ends a room that is not open")
		}
		if e.Kind == End && e.Size < minEnded {
			return refuse("a room that ended has at least two entries")
		}
	case Begin: // see above
	}
	return nil
}

// nameOf returns the name in a valid key, which is the origin of its log.
func nameOf(vkey string) string {
	name, _, _ := strings.Cut(vkey, "+")
	return name
}
