package rooms

import (
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/room"
)

// TestPublishWarnings checks the warnings before publishing.
func TestPublishWarnings(t *testing.T) {
	t.Parallel()
	known := []string{"drand:quicknet", "none"}
	opens := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		config  room.Config
		form    roomForm
		beacons []string
		want    []string
	}{
		{room.Config{Opens: &opens, Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}}, roomForm{}, known, nil},
		{room.Config{}, roomForm{}, known, []string{"opens immediately", "The shop has no address"}},
		{room.Config{Opens: &opens}, roomForm{values: map[string]string{"beacon": "none"}}, known, []string{"The shop has no address", "level 1"}},
		{room.Config{Opens: &opens}, roomForm{}, known[1:], []string{"The shop has no address", "level 1"}},
	} {
		got := publishWarnings(test.config, test.form, test.beacons)
		if len(got) != len(test.want) {
			t.Fatalf("%+v: %q, want %q", test.config, got, test.want)
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%+v: %q, want %q", test.config, got, want)
			}
		}
	}
}
