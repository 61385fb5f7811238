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
	"github.com/proofline/proofline/room/projection"
	"github.com/proofline/proofline/room/sequence"
	"github.com/proofline/proofline/vrf"
)

// TestEmptyWake wakes the sequencer between requests when there is no work, as every entry of another node
// does.
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
			r.sequencer.Wake()
			time.Sleep(2 * time.Millisecond) // time to wake
		}
	}
}

// TestCancelled cancels joins and changes while they wait: they end at once and have no effect.
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

// TestClose closes a sequencer while one batch is running and more is queued: all of it is finished, and
// nothing else is accepted.
func TestClose(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{Slug: "close"})
	release := lock(t, url, r)
	joins := make(chan error, 21)
	join := func() { _, err := r.Join(t.Context(), newVisitor(r).ticket); joins <- err }
	go join()
	time.Sleep(200 * time.Millisecond) // time to be taken
	eventually(t, "the first join is under way", func() bool { return r.sequencer.Queued() == 0 })
	for range cap(joins) - 1 {
		go join()
	}
	eventually(t, "the other joins wait", func() bool { return r.sequencer.Queued() == cap(joins)-1 })
	closed := make(chan error, 1)
	go func() { closed <- rs.Close(t.Context()) }()
	eventually(t, "the room is stopping", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := r.Join(ctx, newVisitor(r).ticket)
		return errors.Is(err, ErrStopping)
	})
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, ErrStopping) {
		t.Errorf("join: %v, want ErrStopping", err)
	}
	release()
	for range cap(joins) {
		if err := <-joins; err != nil {
			t.Errorf("join: %v", err)
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
	<-r.sequencer.Done()
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

// TestCloseInVain closes while the database does not respond: all waiting calls return an error, however many
// there are.
func TestCloseInVain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := New(node(t, url, newMaster(t)).Options) // not closed by the test kit, which expects closing to succeed
	r := create(t, rs, Config{Slug: "vain"})
	defer lock(t, url, r)()
	joins := make(chan error, 8_200)
	join := func() { _, err := r.Join(t.Context(), newVisitor(r).ticket); joins <- err }
	go join()
	time.Sleep(200 * time.Millisecond) // time to be taken
	eventually(t, "the first join is under way", func() bool { return r.sequencer.Queued() == 0 })
	for range cap(joins) - 1 {
		go join()
	}
	eventually(t, "the other joins wait", func() bool { return r.sequencer.Queued() == cap(joins)-1 })
	pause := make(chan error)
	go func() { pause <- r.Pause(t.Context()) }()
	eventually(t, "a change waits", func() bool { return r.sequencer.Queued() == cap(joins) })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := rs.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v, want DeadlineExceeded", err)
	}
	for i := range cap(joins) {
		select {
		case err := <-joins:
			if !errors.Is(err, ErrStopping) {
				t.Fatalf("join: %v, want ErrStopping", err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%d joins are answered", i)
		}
	}
	if err := <-pause; !errors.Is(err, ErrStopping) {
		t.Errorf("pause: %v, want ErrStopping", err)
	}
	<-r.sequencer.Done()
}

// TestRefusedJoin sends a ticket that the rules refuse, together with others: only that one fails.
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
				ticket[6] = 0x40 // not a UUID of version 8
			}
			_, err := r.Join(t.Context(), ticket)
			if violation := (*fairness.Violation)(nil); i%4 == 0 && (!errors.Is(err, sequence.ErrRefused) || errors.As(err, &violation)) || i%4 != 0 && err != nil {
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

// TestRefusedDuty gives a room a VRF key that is not the one in its policy, so it cannot freeze a window, and the
// rules accept nothing else. The log reports the problem once, and the room goes on when it has the right key.
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
	right := r.keys.VRF
	setKey := func(key *vrf.PrivateKey) { // not during an append
		r.view.Read(func(*projection.Projection, uint64) { r.keys.VRF = key })
	}
	setKey(other)
	said := func() int { return strings.Count(out.String(), "cannot append the entries that are due") }
	refused := 0
	for refused < 10 || said() == 0 {
		switch _, err := r.Join(t.Context(), newVisitor(r).ticket); {
		case errors.Is(err, sequence.ErrRefused):
			refused++
		case err != nil:
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if c := r.Snapshot().Counts; c.Drawn != 0 || c.Windows != 1 {
		t.Errorf("counts %+v, want one window, not drawn", c)
	}
	if n := said(); n != 1 {
		t.Errorf("logged %d times:\n%s", n, out.String())
	}
	setKey(right)
	eventually(t, "the window is drawn", func() bool { c := r.Snapshot().Counts; return c.Drawn == c.Arrivals })
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); err != nil {
		t.Error(err)
	}
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

// TestBrokenLog changes the transcript behind the server's back: joins soon get errors, and work again once
// the transcript is repaired.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	r := create(t, node(t, url, master), Config{Slug: "broken"})
	joined := joinMany(t, r, 5)
	superuser(t, url, `update log_bundles set entries = set_byte(entries, 3, 255) where first <= 3 and first + count > 3`)
	r.sequencer.Suspect() // makes the server read the room again
	eventually(t, "the room is read again", func() bool {
		_, err := r.Join(t.Context(), newVisitor(r).ticket)
		return errors.Is(err, pglog.ErrCorrupt)
	})
	for range 2 {
		began := time.Now()
		if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, pglog.ErrCorrupt) || time.Since(began) > 30*time.Second {
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
	superuser(t, url, `update log_bundles set entries = set_byte(entries, 3, ascii('r')) where first <= 3 and first + count > 3`)
	eventually(t, "a join works", func() bool {
		_, err := r.Join(t.Context(), newVisitor(r).ticket)
		return err == nil
	})
	auditRoom(t, get(t, other, "broken"))
}

// TestLogGone deletes the room's log.
func TestLogGone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "gone"})
	superuser(t, url, `delete from log_heads`)
	if _, err := r.Join(t.Context(), newVisitor(r).ticket); !errors.Is(err, pglog.ErrNotFound) {
		t.Errorf("join: %v, want ErrNotFound", err)
	}
}
