// Package regression detects that a database lacks published entries, holds the rooms concerned, and recovers
// them.
//
// The marks of a node say how far it has seen each log. A log in the database must continue all marks: a room
// whose log does not is held on all nodes. It signs and answers nothing until its entries are back, or its
// operator ends it.
package regression

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/mark"
)

// ErrRegressed is returned by a room whose transcript lacks published entries. It signs and answers nothing
// until they are back.
var ErrRegressed = errors.New("part of this room's transcript is missing; the room waits until it is back")

// ErrAbandoned is returned by a room that its operator ended because part of its transcript is lost.
var ErrAbandoned = errors.New("the room has ended: part of its transcript is lost")

// Regression is the difference between the transcript in the database and the published one.
type Regression struct {
	Since     time.Time // when the difference was noticed, by this machine's clock
	Has       pglog.Mark
	Had       pglog.Mark // what was published; its root is zero where only the size is known
	By        string     // where it was seen: on this node, on another one, or by a witness
	Statement string     // statement of the operator, who has ended the room; empty: the room can be recovered
	isStored  bool       // the database has it, and recover may have released it meanwhile
}

// Error describes both transcripts.
func (g *Regression) Error() string {
	if g.Statement != "" {
		return ErrAbandoned.Error()
	}
	return fmt.Sprintf("%v: the database has %d entries with root %v, %s saw %d with root %v", ErrRegressed,
		g.Has.Size, g.Has.Root, g.By, g.Had.Size, g.Had.Root)
}

// Unwrap returns [ErrRegressed] or [ErrAbandoned].
func (g *Regression) Unwrap() error {
	if g.Statement != "" {
		return ErrAbandoned
	}
	return ErrRegressed
}

// HasRoot reports whether the root of the published log is known, not only its size.
func (g *Regression) HasRoot() bool {
	return g.Had.Root != (audit.Hash{}) && g.Had.Root != pglog.OtherRoot
}

// ByWitness reports whether a witness, rather than a server, has seen more.
func (g *Regression) ByWitness() bool { return strings.HasPrefix(g.By, WitnessPrefix) }

// Words returns the operator's words in the statement: without the lines that [Recovery.End] puts before
// them, and without the signature.
func (g *Regression) Words() string {
	text := g.Statement[:max(strings.LastIndex(g.Statement, "\n\n"), 0)]
	for range statementHead {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// WitnessPrefix begins the name of a witness that saw another log.
const WitnessPrefix = "witness "

// recheckInterval is how often a held room checks whether its missing entries are back.
const recheckInterval = time.Second

// Guard compares the log of one room with the marks, and holds the room. It is safe for concurrent use, except
// that only the goroutine that appends may call MayBeBack.
type Guard struct {
	id    uuid.UUID
	name  mark.Log // the log's name in the marks
	store *pglog.Store
	marks *mark.Store
	log   *slog.Logger

	regression atomic.Pointer[Regression] // nil: the transcript is complete
	isUnmarked atomic.Bool                // a mark could not be written, and the failure has been logged
	rechecked  time.Time                  // when MayBeBack last queried the database
}

// NewGuard returns the guard of a room's log; name is the log's name in the marks.
func NewGuard(id uuid.UUID, name mark.Log, store *pglog.Store, marks *mark.Store, log *slog.Logger) *Guard {
	return &Guard{id: id, name: name, store: store, marks: marks, log: log}
}

// Regression returns the difference between the room's transcript and the published one; nil: there is none.
func (g *Guard) Regression() *Regression { return g.regression.Load() }

// Err returns the [*Regression] as an error; nil: there is none. No request about a held room may be answered.
func (g *Guard) Err() error {
	if r := g.regression.Load(); r != nil {
		return r
	}
	return nil
}

// Note stores a mark of the log before this node shows the log up to the mark's size.
func (g *Guard) Note(m pglog.Mark) {
	if err := g.marks.Put(g.name, m); err != nil && !g.isUnmarked.Swap(true) {
		g.log.Error("cannot write mark: after a restart this server may not notice that its database lost entries",
			"room", g.name.Slug, "err", err)
	} else if err == nil {
		g.isUnmarked.Store(false)
	}
}

// IsMarked reports whether this node has a mark of the log.
func (g *Guard) IsMarked() bool { return !g.marks.Get(g.name).IsZero() }

// Wanted returns the marks that the log in the database must continue. The error is a [*Regression] if the
// operator has ended the room.
func (g *Guard) Wanted(ctx context.Context) (*Wanted, error) {
	w := &Wanted{}
	if m := g.marks.Get(g.name); !m.IsZero() {
		w.marks = append(w.marks, wantedMark{m, g.marks.Name(), false})
	}
	m, err := g.marks.Elsewhere(ctx, g.name)
	switch {
	case err != nil:
		g.log.Debug("opening a room without its mark in object storage, which is compared later", "room", g.name.Slug,
			"err", err)
	case !m.IsZero():
		w.marks = append(w.marks, wantedMark{m, mark.RemoteName, false})
	}
	_, h, err := g.store.State(ctx, g.id)
	switch {
	case errors.Is(err, pglog.ErrNotFound):
		return w, nil
	case err != nil:
		return nil, err
	case h.Ended != "":
		return nil, g.Hold(ctx, Regression{Had: h.Mark, By: h.By, Statement: h.Ended})
	case h.By != "":
		w.marks = append(w.marks, wantedMark{h.Mark, h.By, true})
	}
	return w, nil
}

// Check holds the room if its log, which was read with [Wanted.Note], lacks a wanted mark: then it returns the
// [*Regression]. log is the mark of the whole log.
func (g *Guard) Check(ctx context.Context, w *Wanted, log pglog.Mark) error {
	lacks := w.missed
	for i := range w.marks {
		if lacks == nil && log.Size < w.marks[i].Size {
			lacks = &w.marks[i]
		}
	}
	if lacks == nil {
		return nil
	}
	return g.Hold(ctx, Regression{Has: log, Had: lacks.Mark, By: lacks.by, isStored: lacks.isHeld})
}

// Hold holds the room on all nodes, and returns the error for waiting requests.
func (g *Guard) Hold(ctx context.Context, r Regression) error {
	r.Since = time.Now()
	if was := g.regression.Load(); was != nil {
		r.Since = was.Since
	} else {
		g.log.Error("room is held: its transcript lacks published entries; run proofline recover",
			"room", g.name.Slug, "size", r.Has.Size, "root", r.Has.Root, "shown_size", r.Had.Size,
			"shown_root", r.Had.Root, "shown_to", r.By, "ended", r.Statement != "")
	}
	g.regression.Store(&r)
	if r.Statement == "" && !r.isStored {
		if err := g.store.Hold(ctx, g.id, r.Had, r.By); err != nil {
			g.log.Error("cannot hold room on other servers", "room", g.name.Slug, "err", err)
		}
	}
	return &r
}

// Lift releases the hold in the database once the log continues all wanted marks.
func (g *Guard) Lift(ctx context.Context, w *Wanted) error {
	for i := range w.marks {
		if w.marks[i].isHeld {
			return g.store.Release(ctx, g.id, 0)
		}
	}
	return nil
}

// MayBeBack reports whether the missing entries of a held room may be back, so that reading its log is
// worthwhile. It queries the database at most once a second.
func (g *Guard) MayBeBack(ctx context.Context) (bool, error) {
	if time.Since(g.rechecked) < recheckInterval {
		return false, nil
	}
	g.rechecked = time.Now()
	has, hold, err := g.store.State(ctx, g.id)
	return err == nil && (hold.Ended != "" || has.Size >= max(hold.Size, g.marks.Get(g.name).Size)), err
}

// Heal releases the room on this node: its transcript, of that size, is complete again.
func (g *Guard) Heal(size uint64) {
	if was := g.regression.Swap(nil); was != nil {
		g.log.Warn("room continues: its transcript has all published entries again", "room", g.name.Slug,
			"size", size, "held_for", time.Since(was.Since).Round(time.Millisecond))
	}
}

// Wanted are the marks that a log must continue.
type Wanted struct {
	marks  []wantedMark
	missed *wantedMark // the first from which the log differs
}

// Note compares the log, read up to size, with the marks of that size; root returns the log's root.
func (w *Wanted) Note(size uint64, root func() audit.Hash) {
	for i := range w.marks {
		if w.missed == nil && w.marks[i].isMissed(size, root) {
			w.missed = &w.marks[i]
		}
	}
}

// wantedMark is a mark that the log in the database must continue.
type wantedMark struct {
	pglog.Mark
	by     string
	isHeld bool // the hold is in the database
}

// isMissed reports whether a log, read up to size, differs from the mark.
func (w *wantedMark) isMissed(size uint64, root func() audit.Hash) bool {
	return size == w.Size && w.Root != audit.Hash{} && root() != w.Root
}
