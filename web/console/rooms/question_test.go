package rooms_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// TestPublishShowsWhatChanges: publishing checks the draft first, and then shows
// times, zone, pace and shop.
func TestPublishShowsWhatChanges(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, room.Config{Slug: "taken"})
	form := []string{
		"title", "Concert", "slug", "concert", "opens", "2030-05-01T10:00:00Z", "starts", "2030-05-01T12:00:00Z", "windows[0].length", "10 min",
		"outflow.per_minute", "600", "targets", "https://shop.example.com/tickets", "time_zone", "Europe/Vienna", "do", "publish",
	}
	with := func(name, value string) []string { return append(append([]string{}, form...), name, value) }
	for _, test := range []struct{ name, value, want string }{
		{"slug", "taken", "another room has this address"},
		{"outflow.per_minute", "abc", `id="e-outflow.per_minute"`},
		{"starts", "2030-05-01T09:00:00Z", `id="e-starts"`},
		{"opens", "2020-05-01T09:00:00Z", "must not be in the past"},
		{"time_zone", "Vienna", `id="e-time_zone"`},
	} {
		changed := with("x", "")
		for i := 0; i < len(changed); i += 2 {
			if changed[i] == test.name {
				changed[i+1] = test.value
			}
		}
		s.Post(consoletest.Operator, "/console/rooms/new", changed...).Want(http.StatusBadRequest).Has(test.want).Lacks("data-question")
	}
	asked := s.Post(consoletest.Operator, "/console/rooms/new", form...).Want(http.StatusOK).Has("data-question", "Publish this room?",
		">1 May 2030, 10:00 UTC<", ">1 May 2030, 12:00 UTC<", `Europe/Vienna <span class="soft" data-unless-zone="Europe/Vienna">(times here: <span data-time-zone>UTC</span>)</span>`, "600 a minute", "https://shop.example.com/tickets", "/r/concert", "from the opening: 10 min", "publish-saved")
	if list, err := s.Control.Drafts.List(t.Context(), consoletest.Actor(consoletest.Operator)); err != nil || len(list) != 6 {
		t.Errorf("%d drafts, %v: input is saved even if it cannot be published", len(list), err)
	}
	sent := regexp.MustCompile(`action="(/console/drafts/[^"]+)"`).FindStringSubmatch(asked.Body)[1]
	version := regexp.MustCompile(`name="version" value="([0-9]+)"`).FindStringSubmatch(asked.Body)[1]
	s.Post(consoletest.Operator, sent, "do", "publish-saved", "version", version, "confirmed", "1").RedirectsTo("/console/rooms/concert?done=room-published")
}
