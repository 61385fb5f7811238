package room

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
	Since     time.Time // by this machine's clock
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

// ByWitness reports whether a witness has seen more, rather than a server.
func (g *Regression) ByWitness() bool { return strings.HasPrefix(g.By, witnessPrefix) }

// Words returns the operator's words in the statement: without the lines that [Recovery.End] puts before
// them, and without the signature.
func (g *Regression) Words() string {
	text := g.Statement[:max(strings.LastIndex(g.Statement, "\n\n"), 0)]
	for range statementHead {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// Regression returns the difference between the room's transcript and the published one; nil: there is none.
func (r *Room) Regression() *Regression { return r.regression.Load() }

// witnessPrefix begins the name of a witness that saw another log.
const witnessPrefix = "witness "

// recheckEvery is how often a held room checks whether its missing entries are back.
const recheckEvery = time.Second

// markOf returns the name of the room's log among the marks.
func (r *Room) markOf() mark.Log { return mark.Log{Slug: r.Slug, Key: r.keys.Log.KeyHash()} }

// expose shows readers a log as far as it was read or stored. The caller has confirmed it; expose marks it
// first.
func (r *Room) expose(l *live) {
	size := l.Size()
	if err := r.marks.Put(r.markOf(), pglog.Mark{Size: size, Root: l.log.Root()}); err != nil &&
		!r.unmarked.Swap(true) {
		r.log.Error("cannot write mark: after a restart this server may not notice that its database went back",
			"room", r.Slug, "err", err)
	} else if err == nil {
		r.unmarked.Store(false)
	}
	r.mu.Lock()
	r.live, r.stored = l, size
	r.mu.Unlock()
}

// wanted returns the marks that the log in the database must continue.
func (r *Room) wanted(ctx context.Context) (list []wantedMark, err error) {
	if m := r.marks.Get(r.markOf()); !m.IsZero() {
		list = append(list, wantedMark{m, r.marks.Name(), false})
	}
	_, h, err := r.store.State(ctx, r.ID)
	switch {
	case errors.Is(err, pglog.ErrNotFound):
		return list, nil
	case err != nil:
		return nil, err
	case h.Ended != "":
		return nil, r.regress(ctx, Regression{Had: h.Mark, By: h.By, Statement: h.Ended})
	case h.By != "":
		list = append(list, wantedMark{h.Mark, h.By, true})
	}
	return list, nil
}

// wantedMark is a mark that the log in the database must continue.
type wantedMark struct {
	pglog.Mark
	by     string
	isHeld bool // the hold is in the database
}

// isMissed reports whether a log, read up to size, differs from the mark; root is the log's root at that
// size.
func (w *wantedMark) isMissed(size uint64, root audit.Hash) bool {
	return size == w.Size && w.Root != audit.Hash{} && root != w.Root
}

// regress holds the room on all nodes, and returns the error for waiting requests.
func (r *Room) regress(ctx context.Context, g Regression) error {
	g.Since = time.Now()
	if was := r.regression.Load(); was != nil {
		g.Since = was.Since
	} else {
		r.log.Error("room is held: its transcript lacks published entries; run proofline recover",
			"room", r.Slug, "size", g.Has.Size, "root", g.Has.Root, "shown_size", g.Had.Size,
			"shown_root", g.Had.Root, "shown_to", g.By, "ended", g.Statement != "")
	}
	r.regression.Store(&g)
	if g.Statement == "" && !g.isStored {
		if err := r.store.Hold(ctx, r.ID, g.Had, g.By); err != nil {
			r.log.Error("cannot hold room on other servers", "room", r.Slug, "err", err)
		}
	}
	return &g
}

// lift releases the hold in the database once the log continues all wanted marks.
func (r *Room) lift(ctx context.Context, wanted []wantedMark) error {
	for i := range wanted {
		if wanted[i].isHeld {
			return r.store.Release(ctx, r.ID, 0)
		}
	}
	return nil
}

// covers waits until this node has marked the log up to size, which it is about to show. Errors:
// [*Regression], [ErrBusy], and that of ctx.
func (r *Room) covers(ctx context.Context, size uint64) error {
	for end := time.Now().Add(coverTimeout); ; {
		if g := r.regression.Load(); g != nil {
			return g
		}
		if r.durableSize() >= size {
			return nil
		}
		if time.Now().After(end) {
			return ErrBusy
		}
		r.queue.signal()
		if !sleep(ctx, coverPoll) {
			return ctx.Err()
		}
	}
}

// shows is covers for a signed checkpoint.
func (r *Room) shows(ctx context.Context, signed []byte) error {
	text, _, _ := strings.Cut(string(signed), "\n\n")
	c, err := audit.ParseCheckpoint(text + "\n")
	if err != nil {
		return err
	}
	return r.covers(ctx, c.Size)
}

// How long a reader waits until this node has read what it is to show, and how often it checks. A node is at
// most one tick behind the others.
const (
	coverTimeout = 3 * time.Second
	coverPoll    = 10 * time.Millisecond
)

// heal releases a room whose transcript is complete again.
func (r *Room) heal() {
	if was := r.regression.Swap(nil); was != nil {
		r.log.Warn("room continues: its transcript has all published entries again", "room", r.Slug,
			"size", r.durableSize(), "held_for", time.Since(was.Since).Round(time.Millisecond))
	}
}

// recheck checks whether the missing entries of a held room are back.
func (r *Room) recheck(ctx context.Context) error {
	if time.Since(r.rechecked) < recheckEvery {
		return nil
	}
	r.rechecked = time.Now()
	has, hold, err := r.store.State(ctx, r.ID)
	if err != nil || hold.Ended == "" && has.Size < max(hold.Size, r.marks.Get(r.markOf()).Size) {
		return err // reading the log would not tell more
	}
	if err := r.reload(ctx); err != nil {
		return err
	}
	if err := remind(ctx, r.marks, r.flow.store, r.log); err != nil {
		return err
	}
	r.lost = false
	r.heal()
	r.refresh(ctx)
	return nil
}
