package console_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// TestStopped: every page of a room with missing records says why, and what to do; the list of rooms still
// shows all others, and other organizations see nothing. Then the room is ended with a statement.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "stopped", Title: "Stopped"})
	s.Create(consoletest.Owner, room.Config{Slug: "fine", Title: "Fine"})
	s.AddSite(consoletest.Owner, "shop", r)
	hold := func(m pglog.Mark, by string) {
		t.Helper()
		if err := s.Control.Rooms.Logs.Release(t.Context(), r.ID, 0); err != nil {
			t.Fatal(err)
		}
		isWith(s, nil)
		if err := s.Control.Rooms.Logs.Hold(t.Context(), r.ID, m, by); err != nil {
			t.Fatal(err)
		}
		isWith(s, room.ErrRegressed)
	}
	has := r.Snapshot().Size
	root := audit.LeafHash([]byte("another"))
	hold(pglog.Mark{Size: has + 1234, Root: root}, "server 0b3e4d8e")
	for _, path := range []string{"/console/rooms/stopped", "/console/rooms/stopped/settings"} {
		s.Get(consoletest.Owner, path).Want(http.StatusServiceUnavailable).
			Has("data-stopped", "lacks 1,234 entries", root.String(), "server 0b3e4d8e", "proofline recover stopped --from COPY --yes", "--end-with", "RECOVERY.md").
			Lacks("--overrule-witness")
	}
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Has(">records missing<", ">Fine<")
	s.Get(consoletest.Owner, "/console/sites/shop").Want(http.StatusOK).Has(">records missing<", "is stopped and admits no visitors")
	s.Get(consoletest.Owner, "/console/sites").Want(http.StatusOK)
	s.Get(consoletest.Stranger, "/console/rooms/stopped").Want(http.StatusNotFound).Lacks("data-stopped", root.String())

	hold(pglog.Mark{Size: has + 7}, "witness one.example.org")
	s.Get(consoletest.Owner, "/console/rooms/stopped").Want(http.StatusServiceUnavailable).Has("lacks 7 entries", "witness one.example.org", "proofline recover stopped --overrule-witness --yes").
		Lacks("AAAAAAAA")
	hold(pglog.Mark{Size: 1, Root: pglog.OtherRoot}, "witness one.example.org")
	s.Get(consoletest.Owner, "/console/rooms/stopped").Want(http.StatusServiceUnavailable).Has("another history").Lacks("//////", "Missing</dt>")

	recovery, err := s.Control.Rooms.Recover(t.Context(), "stopped")
	if err == nil {
		_, err = recovery.End(t.Context(), "All <b>tickets</b> are refunded.")
	}
	if err != nil {
		t.Fatal(err)
	}
	isWith(s, room.ErrAbandoned)
	s.Get(consoletest.Owner, "/console/rooms/stopped").Want(http.StatusGone).Has("records are lost", "All &lt;b&gt;tickets&lt;/b&gt; are refunded.", r.Origin).Lacks("proofline recover")
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Has(">ended<", ">Fine<").Lacks(">records missing<")
}

// isWith waits until the room returns an error, or nil.
func isWith(s *consoletest.Site, want error) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Control.Rooms.Get(s.Context(), "stopped")
		if want == nil && err == nil || want != nil && errors.Is(err, want) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("the room is %v, want %v", err, want)
		}
	}
}
