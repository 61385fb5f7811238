package zone_test

import (
	"testing"
	"time"

	"github.com/proofline/proofline/internal/zone"
)

func TestParse(t *testing.T) {
	t.Setenv("ZONEINFO", "/nowhere")
	at := time.Date(2030, 7, 1, 10, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"": "10:00 UTC", "UTC": "10:00 UTC", "Europe/Vienna": "12:00 CEST", "America/New_York": "06:00 EDT",
		"Asia/Kathmandu": "15:45 +0545",
	} {
		found, err := zone.Parse(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := at.In(found).Format("15:04 MST"); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"Local", "Vienna", "../etc/passwd", "/etc/localtime", "Europe/Vienna\x00", "CEST"} {
		if found, err := zone.Parse(name); err == nil {
			t.Errorf("%q is %v", name, found)
		}
	}
}
