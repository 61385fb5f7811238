// Package outsider watches the rooms of a node as an outsider does: it reads their public pages over HTTP, and checks
// that each checkpoint continues the one before, that new entries follow the rules, and that windows freeze and draw in
// time. It raises the alarm that an outsider's proofline-verify watch would raise.
//
// Its cost is bounded. It reads one room at a time and only what is new. A room that is large when the watch begins, or
// one that grows beyond what all rooms together may take, is followed by its checkpoints alone.
package outsider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/source"
	"github.com/proofline/proofline/verifier/watch"
)

const (
	checkInterval = 5 * time.Second // between checks of one room
	retryInterval = time.Minute     // after a failed check, so that an unreachable address costs little
	breath        = 50 * time.Millisecond
	checkTimeout  = 20 * time.Second
	// unreadAfter is how long a room must be unreadable to count as unread.
	unreadAfter = 2 * time.Minute
	// maxFirst is the largest log that is read from its beginning, and maxEntries the number of entries in all rooms
	// whose state is kept: about 200 bytes for each arrival.
	maxFirst   = 50_000
	maxEntries = 500_000
)

// Sender sends alerts to an organization's recipients, as in package alert.
type Sender interface {
	Wants(org uuid.UUID, kind webhook.AlertKind) bool
	Send(ctx context.Context, org uuid.UUID, kind webhook.AlertKind, room, text string) error
}

// Options configures [New]. All fields are required.
type Options struct {
	Rooms *room.Rooms
	Late  time.Duration // how late a freeze, a draw or a proof may be
	Dir   string        // for files of evidence
	Log   *slog.Logger
	// Open opens the public pages of a room.
	Open func(url string) (verifier.Source, error)
}

// HTTP opens rooms over HTTP, with one connection.
func HTTP() func(url string) (verifier.Source, error) {
	client := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}}
	return func(url string) (verifier.Source, error) { return source.HTTP(url, client) }
}

// Watch watches the rooms of a node. It is safe for concurrent use, except for Run. A nil Watch watches nothing.
type Watch struct {
	Options
	sender           Sender                 // used by Run alone
	subjects         map[uuid.UUID]*subject // used by Run alone
	first, mostAtAll uint64                 // maxFirst and maxEntries, unless a test says otherwise

	mu     sync.Mutex        // guards the fields below
	alarms map[string]string // what is wrong, by slug
	counts Counts
}

// Counts are figures of a watch.
type Counts struct {
	Alarms  int    // rooms with an alarm
	Unread  int    // rooms that could not be read for two minutes
	Entries uint64 // entries of the checkpoints that were read last
}

// subject is a room that is watched.
type subject struct {
	room   *room.Room
	whole  *watch.Watcher // nil: not begun, or only checkpoints are followed
	heads  *watch.Log     // nil: not begun, or entries are followed too
	src    verifier.Source
	due    time.Time // when it is checked next
	read   time.Time // when it was last read, or first due
	failed string    // problem that was logged last
	kind   evidence.Kind
	isOver bool // the room was read to its end
}

// New returns a watch that has not read anything.
func New(o Options) *Watch {
	return &Watch{Options: o, subjects: map[uuid.UUID]*subject{}, first: maxFirst, mostAtAll: maxEntries,
		alarms: map[string]string{}}
}

// Run watches until ctx is done, and sends alerts through sender.
func (w *Watch) Run(ctx context.Context, sender Sender) {
	if w != nil {
		w.sender = sender
		timing.Every(ctx, time.Second, w.round)
	}
}

// Alarm returns what is wrong with a room; empty: nothing was found.
func (w *Watch) Alarm(slug string) string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alarms[slug]
}

// Counts returns the watch's figures, as of its latest round.
func (w *Watch) Counts() Counts {
	if w == nil {
		return Counts{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// round checks the rooms that are due, one after the other.
func (w *Watch) round(ctx context.Context) {
	seen := map[uuid.UUID]bool{}
	for _, r := range w.Rooms.Loaded() {
		x := w.subjects[r.ID]
		if x == nil || x.room != r { // also one that was loaded again, with what was seen of it
			if x == nil && r.Snapshot().Ended {
				continue
			}
			if x == nil {
				x = &subject{read: time.Now()}
				w.subjects[r.ID] = x
			}
			x.room = r
		}
		seen[r.ID] = true
		if !x.isOver && time.Now().After(x.due) {
			w.check(ctx, x)
			timing.Sleep(ctx, breath)
		}
		if ctx.Err() != nil {
			return
		}
	}
	maps.DeleteFunc(w.subjects, func(id uuid.UUID, _ *subject) bool { return !seen[id] })
	now, slugs := Counts{}, map[string]bool{}
	for _, x := range w.subjects {
		slugs[x.room.Slug] = true
		now.Entries += x.head()
		if !x.isOver && time.Since(x.read) > unreadAfter {
			now.Unread++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.alarms, func(slug string, _ string) bool { return !slugs[slug] })
	now.Alarms = len(w.alarms)
	w.counts = now
}

// head returns how far the watch has read.
func (x *subject) head() uint64 {
	switch {
	case x.whole != nil:
		return x.whole.Head().Size
	case x.heads != nil:
		return x.heads.Head().Size
	}
	return 0
}

// check checks a room once.
func (w *Watch) check(ctx context.Context, x *subject) {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := w.step(limited, x)
	if ctx.Err() != nil {
		return
	}
	x.due = time.Now().Add(checkInterval)
	if err != nil {
		if !errors.Is(err, watch.ErrMismatch) { // which becomes evidence if it lasts
			x.due = time.Now().Add(retryInterval)
		}
		if text := err.Error(); text != x.failed {
			x.failed = text
			w.Log.Warn("cannot read a room as its visitors do", "room", x.room.Slug, "url", x.room.URL, "err", err)
		}
		return
	}
	x.read, x.failed = time.Now(), ""
	w.judge(ctx, x, found)
}

// step reads what is new of a room.
func (w *Watch) step(ctx context.Context, x *subject) (*evidence.Evidence, error) {
	now := millis.Of(x.room.Now())
	config := watch.Config{VKey: x.room.VKey, Late: fairness.Millis(w.Late.Milliseconds())}
	if x.src == nil {
		src, err := w.Open(x.room.URL)
		if err != nil {
			return nil, err
		}
		x.src = src
		if size := x.room.Snapshot().Size; size <= w.first && w.kept()+size <= w.mostAtAll {
			x.whole = watch.New(src, config)
		} else {
			x.heads = watch.NewLog(src, config)
		}
	}
	if x.whole != nil && w.kept() > w.mostAtAll {
		config.Kept = x.whole.Seen()
		x.whole, x.heads = nil, watch.NewLog(x.src, config)
	}
	if x.heads != nil {
		return x.heads.Check(ctx, now)
	}
	s, err := x.whole.Step(ctx, now)
	if err != nil {
		return nil, err
	}
	if s.Ended && s.Evidence == nil {
		x.isOver, x.whole = true, nil
	}
	return s.Evidence, nil
}

// kept returns the number of entries of all rooms whose state is kept.
func (w *Watch) kept() (n uint64) {
	for _, x := range w.subjects {
		if x.whole != nil {
			n += x.whole.Head().Size
		}
	}
	return n
}

// alarm is what an alert says about a kind of evidence.
type alarm struct {
	kind webhook.AlertKind
	text string
}

var alarms = map[evidence.Kind]alarm{
	evidence.Fork:        {webhook.AlertForkSeen, "two signed checkpoints of this room contradict each other"},
	evidence.Shrink:      {webhook.AlertForkSeen, "a shorter history is shown than before"},
	evidence.Unproven:    {webhook.AlertForkSeen, "what is shown does not continue what was shown before"},
	evidence.Violation:   {webhook.AlertForkSeen, "an entry breaks the rules"},
	evidence.MissingDraw: {webhook.AlertBeaconLate, "a frozen window is not drawn, although its round has appeared"},
	evidence.LateFreeze:  {webhook.AlertDatabase, "a window is over, but not frozen"},
}

// judge raises or ends the alarm about a room.
func (w *Watch) judge(ctx context.Context, x *subject, found *evidence.Evidence) {
	slug := x.room.Slug
	if found == nil {
		if x.kind != "" {
			w.Log.Info("what the watch found wrong with a room is over", "room", slug, "kind", x.kind)
		}
		x.kind = ""
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.alarms, slug)
		return
	}
	a := alarms[found.Kind]
	text := fmt.Sprintf("Everybody who watches this room can see that %s.", a.text)
	if found.Observed != nil {
		text += fmt.Sprintf(" (%s)", found.Observed.Detail)
	}
	if x.kind != found.Kind {
		x.kind = found.Kind
		name, err := w.keep(slug, found)
		w.Log.Error("the watch of a room's public pages found a violation, as an outsider's would", "room", slug,
			"kind", found.Kind, "evidence", name, "err", err)
	}
	w.mu.Lock()
	w.alarms[slug] = text
	w.mu.Unlock()
	text += " The server's directory of evidence has a file about it; proofline-verify audit says more."
	if !w.sender.Wants(x.room.Owner.Org, a.kind) {
		return
	}
	if err := w.sender.Send(ctx, x.room.Owner.Org, a.kind, slug, text); err != nil && ctx.Err() == nil {
		w.Log.Error("cannot send alert", "kind", a.kind, "room", slug, "err", err)
	}
}

// keep writes evidence to a file, and returns its name.
func (w *Watch) keep(slug string, found *evidence.Evidence) (string, error) {
	content, err := found.Marshal()
	if err != nil {
		return "", err
	}
	at := time.Now().UTC().Format("20060102T150405Z")
	name := filepath.Join(w.Dir, fmt.Sprintf("%s-%s-%s.json", slug, found.Kind, at))
	return name, source.WriteFile(name, content)
}
