package rooms_test

import (
	"net/http"
	"testing"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// TestSettingsTimeZone sets and removes the time zone, which is not in the transcript.
func TestSettingsTimeZone(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
	before := r.Snapshot().Size
	for _, zone := range []string{"Europe/Vienna", ""} {
		s.Post(consoletest.Operator, settingsPath, settingsOf(s.Get(consoletest.Operator, settingsPath), "time_zone", zone, "confirmed", "1")...).RedirectsTo(settingsPath + "?done=settings-saved")
		s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Has(`name="time_zone" type="text" value="` + zone + `"`)
		if got := r.Config().TimeZone; got != zone || r.Snapshot().Size != before {
			t.Errorf("the time zone is %q, want %q; %d entries", got, zone, r.Snapshot().Size-before)
		}
	}
	s.Post(consoletest.Operator, settingsPath, settingsOf(s.Get(consoletest.Operator, settingsPath), "time_zone", "Vienna", "confirmed", "1")...).Want(http.StatusBadRequest).Has(`id="e-time_zone"`, "Europe/Vienna")
}
