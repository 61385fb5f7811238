package console

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room"
)

// TestStopped: of a room whose records are missing every page says why and what to
// do, the list of rooms still shows all others, and other organizations learn
// nothing. Then the room is ended with a statement.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "stopped", Title: "Stopped"})
	s.create(owner, room.Config{Slug: "fine", Title: "Fine"})
	s.addSite(owner, "shop", r)
	hold := func(m pglog.Mark, by string) {
		t.Helper()
		if err := s.control.Rooms.Logs.Release(t.Context(), r.ID, 0); err != nil {
			t.Fatal(err)
		}
		s.isWith(nil)
		if err := s.control.Rooms.Logs.Hold(t.Context(), r.ID, m, by); err != nil {
			t.Fatal(err)
		}
		s.isWith(room.ErrRegressed)
	}
	has := r.Snapshot().Size
	root := audit.LeafHash([]byte("another"))
	hold(pglog.Mark{Size: has + 1234, Root: root}, "server 0b3e4d8e")
	for _, path := range []string{"/console/rooms/stopped", "/console/rooms/stopped/settings"} {
		s.get(owner, path).want(http.StatusServiceUnavailable).
			has("data-stopped", "lacks 1,234 entries", root.String(), "server 0b3e4d8e", "proofline recover stopped --from COPY --yes", "--end-with", "RECOVERY.md").
			lacks("--overrule-witness")
	}
	s.get(owner, "/console/rooms").want(http.StatusOK).has(">records missing<", ">Fine<")
	s.get(owner, "/console/sites/shop").want(http.StatusOK).has(">records missing<", "is stopped and admits no visitors")
	s.get(owner, "/console/sites").want(http.StatusOK)
	s.get(stranger, "/console/rooms/stopped").want(http.StatusNotFound).lacks("data-stopped", root.String())

	hold(pglog.Mark{Size: has + 7}, "witness one.example.org")
	s.get(owner, "/console/rooms/stopped").want(http.StatusServiceUnavailable).has("lacks 7 entries", "witness one.example.org", "proofline recover stopped --overrule-witness --yes").
		lacks("AAAAAAAA")
	hold(pglog.Mark{Size: 1, Root: pglog.OtherRoot}, "witness one.example.org")
	s.get(owner, "/console/rooms/stopped").want(http.StatusServiceUnavailable).has("another history").lacks("//////", "Missing</dt>")

	recovery, err := s.control.Rooms.Recover(t.Context(), "stopped")
	if err == nil {
		_, err = recovery.End(t.Context(), "All <b>tickets</b> are refunded.")
	}
	if err != nil {
		t.Fatal(err)
	}
	s.isWith(room.ErrAbandoned)
	s.get(owner, "/console/rooms/stopped").want(http.StatusGone).has("records are lost", "All &lt;b&gt;tickets&lt;/b&gt; are refunded.", r.Origin).lacks("proofline recover")
	s.get(owner, "/console/rooms").want(http.StatusOK).has(">ended<", ">Fine<").lacks(">records missing<")
}

// isWith waits until the room answers with an error, or nil for none.
func (s *site) isWith(want error) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.control.Rooms.Get(s.Context(), "stopped")
		if want == nil && err == nil || want != nil && errors.Is(err, want) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("the room is %v, want %v", err, want)
		}
	}
}
