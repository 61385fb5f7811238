package reach

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
)

const room = "https://queue.example.com/r/sale"

// TestFailsOpen tests that the connector fails open only if the room fails at the beginning and at the end of
// the delay, the second time without a visitor.
func TestFailsOpen(t *testing.T) {
	t.Parallel()
	log, unrecorded := slog.New(slog.DiscardHandler), NewUnrecorded()
	r, now, down := New(room, log, unrecorded), time.UnixMilli(1_800_000_000_000), errors.New("down")
	const delay = 30 * time.Second
	r.FailedVisitor(now, down)
	if !r.DownSince().Equal(now) || r.FailsOpen(delay) {
		t.Error("fails open after one failure")
	}
	if r.FailedVisitor(now.Add(time.Minute), down); r.FailsOpen(delay) {
		t.Error("fails open by requests of visitors")
	}
	r.Failed(now.Add(delay), down)
	if !r.FailsOpen(delay) {
		t.Fatal("does not fail open")
	}
	for range 3 {
		if !r.Admit(delay, now.Add(delay)) {
			t.Fatal("does not fail open")
		}
	}
	current, ok := r.Current(now.Add(time.Minute))
	if !ok || current.Room != room || current.Requests != 3 || !current.Until.Equal(now.Add(time.Minute)) {
		t.Errorf("current interval %+v, %t", current, ok)
	}
	if list := unrecorded.All([]Past{current}); len(list) != 1 || list[0] != current {
		t.Errorf("unrecorded while it lasts: %+v", list)
	}
	r.Answered(now.Add(2 * time.Minute))
	if _, ok := r.Current(now); ok || !r.DownSince().IsZero() || r.FailsOpen(delay) || r.Admit(delay, now) {
		t.Error("goes on although the room answered")
	}
	list := unrecorded.All([]Past{current}) // it has ended meanwhile
	if len(list) != 1 || !list[0].Until.Equal(now.Add(2*time.Minute)) || list[0].ID != r.Intervals()[0].ID {
		t.Errorf("unrecorded: %+v", list)
	}
	unrecorded.Drop("another", map[id.ID]bool{current.ID: true})
	if unrecorded.Drop(room, map[id.ID]bool{current.ID: true}); len(unrecorded.All(nil)) != 0 {
		t.Error("kept after it was recorded")
	}
}

// TestWithoutServer tests that intervals are not kept for reports without a server.
func TestWithoutServer(t *testing.T) {
	t.Parallel()
	r, now := New(room, slog.New(slog.DiscardHandler), nil), time.UnixMilli(1_800_000_000_000)
	r.Failed(now, errors.New("down"))
	if !r.Admit(0, now) {
		t.Error("does not fail open")
	}
	if r.End(now.Add(time.Second), "the end"); len(r.Intervals()) != 1 || r.Intervals()[0].Until.IsZero() {
		t.Errorf("intervals %+v", r.Intervals())
	}
}
