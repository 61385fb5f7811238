package console

import (
	"net/http"
	"testing"

	"github.com/proofline/proofline/room"
)

// TestSettingsTimeZone sets where the event is and takes it away again, beside the
// transcript.
func TestSettingsTimeZone(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale"})
	before := r.Snapshot().Size
	for _, zone := range []string{"Europe/Vienna", ""} {
		s.post(operator, settingsPath, s.get(operator, settingsPath).settingsOf("time_zone", zone, "confirmed", "1")...).leadsTo(settingsPath + "?done=settings-saved")
		s.get(operator, settingsPath).want(http.StatusOK).has(`name="time_zone" type="text" value="` + zone + `"`)
		if got := r.Config().TimeZone; got != zone || r.Snapshot().Size != before {
			t.Errorf("the time zone is %q, want %q; %d entries", got, zone, r.Snapshot().Size-before)
		}
	}
	s.post(operator, settingsPath, s.get(operator, settingsPath).settingsOf("time_zone", "Vienna", "confirmed", "1")...).want(http.StatusBadRequest).has(`id="e-time_zone"`, "Europe/Vienna")
}
