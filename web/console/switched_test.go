package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// TestSwitchedElsewhere: a form sent from a page of one organization has no effect in another one, to which
// the session has been switched.
func TestSwitchedElsewhere(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	for _, path := range []string{"/console/webhooks/new", "/console/rooms/new?preset=minutes", "/console/alerts", "/console/rooms/sale/message"} {
		page := s.Get(consoletest.Owner, path).Want(http.StatusOK)
		forms := strings.Count(page.Body, `method="post"`)
		if own := strings.Count(page.Body, `<input type="hidden" name="in_organization" value="main">`); forms == 0 || own != forms {
			t.Errorf("%s: %d forms, %d of them say their organization", path, forms, own)
		}
	}
	fields := []string{"url", "https://example.com/hook", "event", "room.ended", "confirmed", "1"}
	for _, path := range []string{"/console/webhooks/new", "/console/alerts", "/console/rooms/new", "/console/rooms/sale/pause"} {
		s.Post(consoletest.Owner, path, append(fields, "in_organization", "other")...).Want(http.StatusConflict).Has("nothing was done")
	}
	if list, err := s.Webhooks.Endpoints.List(t.Context(), consoletest.Actor(consoletest.Owner)); err != nil || len(list) != 0 {
		t.Errorf("%d webhooks, %v", len(list), err)
	}
	if page, err := s.Control.List(t.Context(), consoletest.Actor(consoletest.Owner), control.Filter{}); err != nil || len(page.List) != 1 || page.List[0].Snapshot.Paused {
		t.Errorf("rooms %+v, %v", page.List, err)
	}
	s.Post(consoletest.Owner, "/console/webhooks/new", append(fields, "in_organization", "main")...).Want(http.StatusOK)
}
