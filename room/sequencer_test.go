package room

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/vrf"
)

// TestQueue checks the bounds of what waits and of what one append takes.
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
		if err := q.act(&act{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.join(&join{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one join more: %v, want ErrBusy", err)
	}
	q.duties()
	q.publish()
	<-q.wake
	joins, acts := 0, 0
	for w := q.take(); !w.isEmpty(); w = q.take() {
		if len(w.joins) > maxBatch || len(w.acts) > maxBatch {
			t.Fatalf("a batch of %d joins and %d acts", len(w.joins), len(w.acts))
		}
		if first := joins == 0; w.duties != first || w.publish != first {
			t.Errorf("duties %t, publish %t: want both, once", w.duties, w.publish)
		}
		joins, acts = joins+len(w.joins), acts+len(w.acts)
		select {
		case <-q.wake:
		default:
			if joins < maxQueued {
				t.Fatal("the queue does not say that it has more")
			}
		}
	}
	if joins != maxQueued || acts != more {
		t.Errorf("%d joins and %d acts taken", joins, acts)
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

// TestQueueMemory puts and takes in turn: what was taken and what waits must
// never share memory.
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
		if err := q.join(&join{}); err != nil { // behind what was taken
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

// TestEmptyWake wakes the sequencer without work between requests, as every
// entry of another node does.
func TestEmptyWake(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "wake"})
	for range 10 {
		for _, change := range []func() error{
			func() error { return r.Pause(t.Context()) },
			func() error { return r.Resume(t.Context()) },
			func() error { _, err := r.Join(t.Context(), newVisitor(r).ticket); return err },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			r.queue.signal()
			time.Sleep(2 * time.Millisecond) // let it wake
		}
	}
}

// TestCancelled gives up joins and changes while they wait: they end at once
// and leave nothing behind.
func TestCancelled(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "cancelled"})
	release := lock(t, url, r)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := r.Join(ctx, newVisitor(r).ticket); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("join: %v, want DeadlineExceeded", err)
			}
		})
		all.Go(func() {
			if err := r.End(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("end: %v, want DeadlineExceeded", err)
			}
		})
	}
	all.Wait()
	release()
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
		t.Fatal(err)
	}
	if c := r.Snapshot().Counts; c.Arrivals != 1 || r.Snapshot().Ended {
		t.Errorf("counts %+v, ended %t", c, r.Snapshot().Ended)
	}
}

// TestClose closes while one batch is under way and more is queued: all of it
// is finished, and nothing else is taken.
func TestClose(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{Slug: "close"})
	release := lock(t, url, r)
	joins := make([]*join, 21)
	for i := range joins {
		joins[i] = &join{ctx: t.Context(), ticket: newVisitor(r).ticket, done: make(chan struct{})}
		if err := r.queue.join(joins[i]); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			eventually(t, "the first join is under way", func() bool {
				r.queue.mu.Lock()
				defer r.queue.mu.Unlock()
				return len(r.queue.work.joins) == 0
			})
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- rs.Close(t.Context()) }()
	eventually(t, "the room is stopping", func() bool {
		r.queue.mu.Lock()
		defer r.queue.mu.Unlock()
		return r.queue.stopped
	})
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, ErrStopping) {
		t.Errorf("join: %v, want ErrStopping", err)
	}
	release()
	for i, j := range joins {
		if <-j.done; j.err != nil {
			t.Errorf("join %d: %v", i, j.err)
		}
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("close: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("close does not return")
	}
	<-r.done
	if err := r.Pause(t.Context()); !errors.Is(err, ErrStopping) {
		t.Errorf("pause: %v, want ErrStopping", err)
	}
	if _, err := rs.Create(t.Context(), Config{Slug: "other"}); !errors.Is(err, ErrStopping) {
		t.Errorf("create: %v, want ErrStopping", err)
	}
	if c := replay(t, r).Counts(); c.Arrivals != 21 {
		t.Errorf("counts %+v, want 21 arrivals", c)
	}
}

// TestCloseInVain closes while the database does not get on: everybody who
// waits is told, however many.
func TestCloseInVain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := New(node(t, url, newMaster(t)).Options) // not closed by the kit, which wants it to succeed
	r := create(t, rs, Config{Slug: "vain"})
	defer lock(t, url, r)()
	joins := make([]*join, 2*maxBatch+5)
	for i := range joins {
		joins[i] = &join{ctx: t.Context(), ticket: newVisitor(r).ticket, done: make(chan struct{})}
		if err := r.queue.join(joins[i]); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a batch is taken", func() bool { r.queue.mu.Lock(); defer r.queue.mu.Unlock(); return len(r.queue.work.joins) < len(joins) })
	pause := make(chan error)
	go func() { pause <- r.Pause(t.Context()) }()
	eventually(t, "a change waits", func() bool { r.queue.mu.Lock(); defer r.queue.mu.Unlock(); return len(r.queue.work.acts) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := rs.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v, want DeadlineExceeded", err)
	}
	for i, j := range joins {
		select {
		case <-j.done:
			if !errors.Is(j.err, ErrStopping) {
				t.Fatalf("join %d: %v, want ErrStopping", i, j.err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("join %d is not answered", i)
		}
	}
	if err := <-pause; !errors.Is(err, ErrStopping) {
		t.Errorf("pause: %v, want ErrStopping", err)
	}
	<-r.done
}

// TestRefusedJoin sends a ticket that the rules refuse among others: it alone
// fails.
func TestRefusedJoin(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "refused"})
	release := lock(t, url, r)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ticket := newVisitor(r).ticket
			if i%4 == 0 {
				ticket[6] = 0x40 // no UUID of version 8
			}
			_, err := r.Join(t.Context(), ticket)
			if violation := (*fairness.Violation)(nil); i%4 == 0 && (!errors.Is(err, errRefused) || errors.As(err, &violation)) || i%4 != 0 && err != nil {
				t.Errorf("join %d: %v", i, err)
			}
		})
	}
	release()
	all.Wait()
	if report := auditRoom(t, r); report.Arrivals != 15 {
		t.Errorf("%d arrivals, want 15", report.Arrivals)
	}
}

// TestRefusedDuty gives a room another VRF key than its policy names: it
// cannot freeze a window. People join all the same, and the log says it once.
func TestRefusedDuty(t *testing.T) {
	t.Parallel()
	var out safeBuffer
	rs := node(t, pgtest.URL(t), newMaster(t))
	rs.Log = slog.New(slog.NewTextHandler(&out, nil))
	r := create(t, rs, Config{Slug: "duty", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}})
	other, err := vrf.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{1}, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	right := r.keys.VRF
	r.keys.VRF = other
	r.mu.Unlock()
	said := func() int { return strings.Count(out.String(), "cannot append the entries that are due") }
	for r.Snapshot().Counts.Windows < 10 || said() == 0 {
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if c := r.Snapshot().Counts; c.Drawn != 0 {
		t.Errorf("counts %+v, want no window drawn", c)
	}
	if n := said(); n != 1 {
		t.Errorf("logged %d times:\n%s", n, out.String())
	}
	r.mu.Lock()
	r.keys.VRF = right
	r.mu.Unlock()
	eventually(t, "all windows are drawn", func() bool { c := r.Snapshot().Counts; return c.Drawn == c.Arrivals })
	auditRoom(t, r)
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestBrokenLog changes the transcript behind the server's back: joins are told
// soon that it does not work, and work again when it is repaired.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	r := create(t, node(t, url, master), Config{Slug: "broken"})
	joined := joinMany(t, r, 5)
	superuser(t, url, `update log_entries set entry = entry || ' ' where index = 3`)
	r.adrift.Store(true) // so that the room is read again
	r.queue.signal()
	eventually(t, "the room is read again", func() bool {
		_, err := r.Join(t.Context(), newVisitor(r).ticket)
		return errors.Is(err, pglog.ErrCorrupt)
	})
	for range 2 {
		began := time.Now()
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, pglog.ErrCorrupt) || time.Since(began) > 5*time.Second {
			t.Errorf("join: %v after %v, want ErrCorrupt", err, time.Since(began))
		}
	}
	if again, err := r.Join(t.Context(), joined[0].ticket); err != nil || !again.Again {
		t.Errorf("join again: %v", err)
	}
	other := node(t, url, master)
	if _, err := other.Get(t.Context(), "broken"); !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("load: %v, want ErrCorrupt", err)
	}
	superuser(t, url, `update log_entries set entry = rtrim(entry) where index = 3`)
	eventually(t, "a join works", func() bool {
		_, err := r.Join(t.Context(), newVisitor(r).ticket)
		return err == nil
	})
	auditRoom(t, get(t, other, "broken"))
}

// TestLogGone takes the room's log away.
func TestLogGone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "gone"})
	superuser(t, url, `delete from log_heads`)
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, pglog.ErrNotFound) {
		t.Errorf("join: %v, want ErrNotFound", err)
	}
}
