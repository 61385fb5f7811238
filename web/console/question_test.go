package console

import (
	"strings"
	"testing"
)

// TestPublishQuestion names what people overlook.
func TestPublishQuestion(t *testing.T) {
	t.Parallel()
	known := []string{"drand:quicknet", "none"}
	for _, test := range []struct {
		form            roomForm
		beacons         []string
		opens, noBeacon bool
	}{
		{roomForm{Opens: "2030-05-01T12:00:00Z"}, known, false, false},
		{roomForm{}, known, true, false},
		{roomForm{Opens: "2030-05-01T12:00:00Z", Beacon: "none"}, known, false, true},
		{roomForm{Opens: "2030-05-01T12:00:00Z"}, known[1:], false, true},
	} {
		question := questionOf(test.form, test.beacons)
		if strings.Contains(question, "opens at once") != test.opens || strings.Contains(question, "level 1") != test.noBeacon || !strings.Contains(question, "for good") {
			t.Errorf("%+v: %q", test.form, question)
		}
	}
}
