package connector

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/internal/address"
	"github.com/proofline/proofline/internal/testlog"
)

// faulty is an http.RoundTripper that panics.
type faulty struct {
	isFaulty atomic.Bool
	asked    atomic.Int64 // while it was open
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.isFaulty.Load() {
		f.asked.Add(1)
		panic("no transport does this")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestFaultyClient tests that panics in background work are recovered.
func TestFaultyClient(t *testing.T) {
	t.Parallel()
	f := &faulty{}
	s := newShop(t, `,"mode":"safety-net","failure":"fail-open-after 30s"`, func(o *Options) {
		o.Client, o.Token, o.Probe, o.reportInterval = &http.Client{Transport: f}, testToken, 5*time.Millisecond, 5*time.Millisecond
		o.Server = address.OriginOf(o.Site.Rooms["sale"].URL)
	})
	cookie := s.enter(s.queue.pass())
	f.isFaulty.Store(true)
	before := f.asked.Load()
	s.clock.pass(2 * time.Minute)
	s.isThrough("with a session", s.get("/tickets", cookie)) // queues a touch
	if r := s.get("/tickets?proofline_pass=" + s.queue.pass()); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("with a pass: %d", r.StatusCode)
	}
	eventually(t, "all of the background has failed again and again", func() bool { return f.asked.Load() > before+20 })
	s.clock.pass(time.Minute)
	eventually(t, "a fault is a failure of the room, which opens", func() bool {
		r := s.get("/tickets")
		s.got = nil
		return r.StatusCode == http.StatusOK
	})
	f.isFaulty.Store(false)
	eventually(t, "the touch is sent", func() bool { return len(s.queue.said()) == 2 && s.queue.said()[1] == "/sessions/touch" })
	eventually(t, "reports are sent again", func() bool {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return len(s.queue.reports) > 0 && s.queue.reports[len(s.queue.reports)-1].Counts["panics"] > 20
	})
	eventually(t, "the room can be reached", func() bool { return s.Stats().Rooms["sale"].DownSince.IsZero() })
}

// TestFaultyStart tests a start with a client that panics.
func TestFaultyStart(t *testing.T) {
	t.Parallel()
	f := &faulty{}
	f.isFaulty.Store(true)
	q := newQueue(t, newClock())
	c, err := New(Options{Site: q.site(`,"mode":"safety-net"`), Key: testKey, Client: &http.Client{Transport: f}, Server: q.URL, Token: testToken, Log: testlog.New(t, slog.LevelInfo)})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if c.Stats().Panics == 0 {
		t.Error("nothing failed")
	}
}
