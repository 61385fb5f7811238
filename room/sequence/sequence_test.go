package sequence

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestQueue checks the limits of what waits and of what one append takes.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue()
	const more = maxBatch + 10
	for i := range maxQueued {
		if err := q.join(&join{}); err != nil {
			t.Fatalf("join %d: %v", i, err)
		}
	}
	for range more {
		if err := q.command(&command{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.join(&join{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one join more: %v, want ErrBusy", err)
	}
	q.duties()
	<-q.wake
	joins, commands := 0, 0
	for w := q.take(); !w.isEmpty(); w = q.take() {
		if len(w.joins) > maxBatch || len(w.commands) > maxBatch {
			t.Fatalf("a batch of %d joins and %d commands", len(w.joins), len(w.commands))
		}
		if first := joins == 0; w.duties != first {
			t.Errorf("duties %t: want them once", w.duties)
		}
		joins, commands = joins+len(w.joins), commands+len(w.commands)
		select {
		case <-q.wake:
		default:
			if joins < maxQueued {
				t.Fatal("the queue does not say that it has more")
			}
		}
	}
	if joins != maxQueued || commands != more {
		t.Errorf("%d joins and %d commands taken", joins, commands)
	}
	if err := q.join(&join{}); err != nil {
		t.Errorf("join after the rush: %v", err)
	}
	q.stop()
	if err := q.join(&join{}); !errors.Is(err, ErrStopping) {
		t.Errorf("join when stopped: %v, want ErrStopping", err)
	}
	if q.isDone() {
		t.Error("done with a join left")
	}
	q.take()
	if !q.isDone() {
		t.Error("not done when empty")
	}
}

// TestQueueMemory alternates between put and take: what was taken and what waits must never share memory.
func TestQueueMemory(t *testing.T) {
	t.Parallel()
	q := newQueue()
	next, want := 0, 0
	number := map[*join]int{}
	for round := range 200 {
		for range round * 97 % (3 * maxBatch / 2) {
			j := &join{}
			number[j] = next
			next++
			if err := q.join(j); err != nil {
				t.Fatal(err)
			}
		}
		w := q.take()
		if err := q.join(&join{}); err != nil { // after what was taken
			t.Fatal(err)
		}
		q.mu.Lock()
		q.work.joins = q.work.joins[:len(q.work.joins)-1]
		q.mu.Unlock()
		for _, j := range w.joins {
			if n, ok := number[j]; !ok || n != want {
				t.Fatalf("join %d came where %d was due", n, want)
			}
			want++
		}
	}
}

// TestRetry: the pause after a failed append ends when the database answers again, and when the room stops.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.Retry()
	s.Retry() // does not block
	if !s.rest(t.Context(), time.Hour) {
		t.Error("the pause ended as if the room had stopped")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if s.rest(ctx, time.Hour) {
		t.Error("the room has stopped, and the append is tried again")
	}
}
