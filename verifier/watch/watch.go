// Package watch follows a live room with a continuous audit:
//
//	Step: checkpoint ─► signed? ─► continues the one before? ─► entries ─► rules ─► on time?
//
// Every step reads and checks the new entries; a violation becomes a file of evidence. A network
// failure proves nothing and is an error of the step. The package has no clock: the caller passes
// the time to each step. It keeps the state of the room in memory, less than 200 bytes per arrival.
package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/ticket"
)

var (
	// ErrNoRoom is returned when a log does not begin with a room entry that has its key.
	ErrNoRoom = errors.New("the log does not begin with a room")
	// ErrKept is returned when the room's key did not sign the kept checkpoint.
	ErrKept = errors.New("the checkpoint kept from before is not signed by the room's key")
	// ErrMismatch is returned when the published files do not match the signed checkpoint, or the
	// checkpoint itself is wrong. This proves nothing unless it persists; then it becomes evidence.
	ErrMismatch = errors.New("the published files do not match, which proves nothing yet")
)

// Config holds what the watcher knows independently of the room.
type Config struct {
	VKey string          // key of the log; "": the key in the room's first entry
	Kept []byte          // checkpoint of an earlier run; nil: none
	Late fairness.Millis // how late a freeze, a draw or a proof may be
}

// Log follows the checkpoints of one log, and no entries. It is not safe for concurrent use.
type Log struct {
	src    verifier.Source
	config Config
	vkey   string
	key    note.Verifier // nil: not known yet

	signed        []byte // the newest checkpoint that continues all earlier ones; nil: none
	head          audit.Checkpoint
	mismatchSince fairness.Time // when the published files stopped matching; 0: they match
}

// NewLog returns a follower of a log, such as the log of rooms, that has not read anything yet.
func NewLog(src verifier.Source, config Config) *Log {
	return &Log{src: src, config: config, vkey: config.VKey}
}

// Check reads the checkpoint at now, which must not be before that of earlier calls. It returns evidence if the log
// does not continue the one before. After an error the next call may succeed.
func (l *Log) Check(ctx context.Context, now fairness.Time) (*evidence.Evidence, error) {
	signed, err := l.src.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	found, err := l.accept(ctx, signed, now)
	if err == nil && found == nil {
		l.mismatchSince = 0
	}
	return found, err
}

// Seen returns the newest checkpoint; nil if there is none yet.
func (l *Log) Seen() []byte { return l.signed }

// VKey returns the key of the log; "" until it is known.
func (l *Log) VKey() string { return l.vkey }

// Head returns the newest checkpoint.
func (l *Log) Head() audit.Checkpoint { return l.head }

// Watcher follows one room. It is not safe for concurrent use.
type Watcher struct {
	*Log
	replay   replay
	caughtUp bool // whether the watcher has reached the head once: later entries are news
}

// New returns a watcher that has not read anything yet.
func New(src verifier.Source, config Config) *Watcher {
	return &Watcher{Log: NewLog(src, config)}
}

// Step is the result of one step.
type Step struct {
	Events   []string           // events, one line each
	Evidence *evidence.Evidence // evidence of a violation, which ends the watch; nil: none
	Ended    bool               // the room has ended and was read to the end
}

// Step reads the state of the room at now, which must not be before that of earlier steps. After an
// error the next step may succeed.
func (w *Watcher) Step(ctx context.Context, now fairness.Time) (*Step, error) {
	s := &Step{}
	signed, err := w.src.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	s.Evidence, err = w.accept(ctx, signed, now)
	if err == nil && s.Evidence == nil {
		err = w.read(ctx, s)
		if errors.Is(err, ErrMismatch) {
			s.Evidence, err = w.suspect(evidence.Unproven, signed, now, err)
		}
	}
	if err != nil || s.Evidence != nil {
		return s, err
	}
	w.mismatchSince = 0
	s.Evidence = w.judge(ctx, now)
	s.Ended = w.replay.state.Ended()
	return s, nil
}

// accept accepts a checkpoint that continues the one before.
func (l *Log) accept(ctx context.Context, signed []byte, now fairness.Time) (*evidence.Evidence, error) {
	if l.key == nil {
		if err := l.begin(ctx, signed); err != nil {
			return nil, err
		}
	}
	head, _, err := audit.OpenCheckpoint(signed, l.key)
	if err != nil {
		return l.suspect(evidence.Unproven, signed, now, err)
	}
	if l.signed != nil && head != l.head {
		found, err := evidence.Contradict(ctx, l.src.Tile, l.vkey, l.signed, signed)
		switch {
		case found != nil:
			return found, nil
		case head.Size < l.head.Size: // a stale cache may show that for a while
			return l.suspect(evidence.Shrink, signed, now, fmt.Errorf("%d entries after %d", head.Size, l.head.Size))
		case errors.Is(err, audit.ErrTile):
			return l.suspect(evidence.Unproven, signed, now, err)
		case err != nil:
			return nil, err
		}
	}
	if l.signed == nil || head != l.head {
		l.signed, l.head = signed, head
	}
	return nil, nil
}

// begin determines the key, and continues where an earlier run ended.
func (l *Log) begin(ctx context.Context, signed []byte) error {
	if l.vkey == "" {
		vkey, err := LogKey(ctx, l.src, signed)
		if err != nil {
			return err
		}
		l.vkey = vkey
	}
	key, err := audit.ParseKey(l.vkey)
	if err != nil {
		err = fmt.Errorf("%w: key %.200q: %w", ErrNoRoom, l.vkey, err)
		l.vkey = l.config.VKey
		return err
	}
	if l.config.Kept != nil {
		head, _, err := audit.OpenCheckpoint(l.config.Kept, key)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrKept, err)
		}
		l.signed, l.head = l.config.Kept, head
	}
	l.key = key
	return nil
}

// LogKey returns the key in the first entry of a room's log, or of a log of rooms. It proves nothing by itself,
// because the log's author chose it.
func LogKey(ctx context.Context, src verifier.Source, signed []byte) (string, error) {
	first, err := FirstEntry(ctx, src, signed)
	if err != nil {
		return "", err
	}
	if vkey, err := roomlog.VKeyOf(first); err == nil {
		return vkey, nil
	}
	e, err := fairness.ParseEntry(first)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	room, ok := e.(*fairness.Room)
	if !ok {
		return "", ErrNoRoom
	}
	return room.LogKey, nil
}

// FirstEntry returns the first entry of the log behind a checkpoint. It verifies neither.
func FirstEntry(ctx context.Context, src verifier.Source, signed []byte) ([]byte, error) {
	head, err := verifier.Unverified(signed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if head.Size == 0 {
		return nil, fmt.Errorf("%w: there are no entries", ErrNoRoom)
	}
	t := audit.Tile{Level: -1, Width: int(min(audit.TileWidth, head.Size))}
	bundle, err := src.Tile(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Path(), err)
	}
	var first []byte
	if err := audit.SplitBundle(bundle, t.Width, func(text []byte) error {
		if first == nil {
			first = text
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return first, nil
}

// suspect returns an error as long as the problem may be temporary, and evidence after that.
func (l *Log) suspect(kind evidence.Kind, signed []byte, now fairness.Time, why error) (*evidence.Evidence, error) {
	if l.mismatchSince == 0 {
		l.mismatchSince = now
	}
	if l.signed == nil || now-l.mismatchSince <= fairness.Time(l.config.Late) {
		if !errors.Is(why, ErrMismatch) {
			why = fmt.Errorf("%w: %w", ErrMismatch, why)
		}
		return nil, why
	}
	return &evidence.Evidence{
		Kind: kind, VKey: ticket.Text(l.vkey), First: l.signed, Second: signed,
		Observed: observation(now, l.mismatchSince, fmt.Sprintf("%.500s", why)),
	}, nil
}

func observation(now, since fairness.Time, detail string) *evidence.Observation {
	return &evidence.Observation{Time: ticket.Number(max(now, 0)), Since: ticket.Number(max(since, 0)),
		Detail: ticket.Text(strings.ToValidUTF8(detail, "?"))}
}

// judge looks for broken rules, and for freezes and draws that are overdue.
func (w *Watcher) judge(ctx context.Context, now fairness.Time) *evidence.Evidence {
	r := &w.replay
	e := &evidence.Evidence{VKey: ticket.Text(w.vkey), First: w.signed}
	late := fairness.Time(w.config.Late)
	switch over, ok := r.state.FreezeDue(); {
	case r.broken != nil:
		e.Kind, e.Observed = evidence.Violation, observation(now, now, r.broken.why)
		w.prove(ctx, e, r.broken.index, r.broken.text)
	case r.state.Ended():
		return nil
	case len(r.pending) > 0 && now-r.pending[0].due > late:
		p := r.pending[0]
		e.Kind, e.Observed = evidence.MissingDraw, observation(now, p.due,
			fmt.Sprintf("window %d is frozen, but not drawn in %d entries", p.window, w.head.Size))
		e.Observed.Window = number(p.window)
		w.prove(ctx, e, p.index, p.text)
	case ok && len(r.open) > 0 && now-over > late:
		p := r.open[0]
		e.Kind, e.Observed = evidence.LateFreeze, observation(now, over,
			fmt.Sprintf("window %d is over, but not frozen in %d entries", p.window, w.head.Size))
		e.Observed.Window = number(p.window)
		w.prove(ctx, e, p.index, p.text)
	default:
		return nil
	}
	return e
}

func number(w fairness.WindowIndex) *ticket.Number {
	n := ticket.Number(w)
	return &n
}

// prove adds an entry to evidence, if the published tiles prove it.
func (w *Watcher) prove(ctx context.Context, e *evidence.Evidence, index uint64, text []byte) {
	path, err := audit.ProveInclusion(ctx, w.src.Tile, w.head, index)
	if err == nil {
		e.Entry = &ticket.Proven{Index: ticket.Number(index), Entry: text, Path: path}
	}
}
