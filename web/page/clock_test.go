package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/web/page"
)

func TestTime(t *testing.T) {
	c := page.At(page.View{Now: noon})
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{noon, "12:03 UTC"},
		{noon.Truncate(time.Minute), "12:03 UTC"},
		{noon.In(time.FixedZone("", 3600)), "12:03 UTC"},
		{noon.Add(24 * time.Hour), "2030-05-02 12:03 UTC"},
		{noon.AddDate(1, 0, 0).Truncate(time.Hour), "2031-05-01 12:00 UTC"},
	} {
		html := string(c.Time(tt.at))
		if !strings.Contains(html, ">"+tt.want+"<") {
			t.Errorf("%v: %s, want %q", tt.at, html, tt.want)
		}
	}
	if got, want := string(c.Time(noon)), `datetime="2030-05-01T12:03:00.000Z"`; !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}

// TestZone checks that times use the date in the event's time zone.
func TestZone(t *testing.T) {
	tokyo, err := zone.Parse("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	c := page.At(page.View{Now: noon, Room: page.Room{Zone: tokyo}})
	for at, want := range map[time.Time]string{noon: "21:03 JST", noon.Add(3 * time.Hour): "2030-05-02 00:03 JST"} {
		if html := string(c.Time(at)); !strings.Contains(html, ">"+want+"<") || !strings.Contains(html, at.Format(`datetime="2006-01-02T15:04:00.000Z"`)) {
			t.Errorf("%v: %s, want %s", at, html, want)
		}
	}
}

// TestBy checks that rounding never puts a deadline in the past.
func TestBy(t *testing.T) {
	c := page.At(page.View{Now: noon})
	for left, want := range map[time.Duration]string{30 * time.Second: "12:03:50 UTC", 80 * time.Second: "12:04:40 UTC", 5 * time.Minute: "12:08 UTC"} {
		if html := string(c.By(noon.Add(left))); !strings.Contains(html, ">"+want+"<") {
			t.Errorf("%v: %s, want %s", left, html, want)
		}
	}
}

// TestRound has the same cases as the script's test of rounding.
func TestRound(t *testing.T) {
	c := page.At(page.View{Now: noon})
	minutes := func(m float64) time.Time { return noon.Add(time.Duration(m * float64(time.Minute))) }
	for _, tt := range []struct{ earliest, latest, wantEarliest, wantLatest string }{
		{"12:04:59", "12:05:01", "12:04:00", "12:06:00"},
		{"12:04:00", "12:05:00", "12:04:00", "12:05:00"},
		{"12:44:10", "13:33:10", "12:40:00", "13:35:00"},
		{"16:44:10", "18:33:10", "16:30:00", "18:45:00"},
	} {
		s := page.Round(c, page.Span{Earliest: clockTime(t, tt.earliest), Latest: clockTime(t, tt.latest)})
		if got := s.Earliest.Format(time.TimeOnly); got != tt.wantEarliest {
			t.Errorf("earliest %s becomes %s, want %s", tt.earliest, got, tt.wantEarliest)
		}
		if got := s.Latest.Format(time.TimeOnly); got != tt.wantLatest {
			t.Errorf("latest %s becomes %s, want %s", tt.latest, got, tt.wantLatest)
		}
	}
	for m := 0.0; m < 1000; m += 0.37 {
		s := page.Span{Earliest: minutes(m / 2), Latest: minutes(m)}
		r := page.Round(c, s)
		if r.Earliest.After(s.Earliest) || r.Latest.Before(s.Latest) || r.Latest.Sub(s.Latest) >= page.Step(s.Latest.Sub(noon)) {
			t.Errorf("%v is rounded to %v", s, r)
		}
	}
}

func clockTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, noon.Format(time.DateOnly)+" "+text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
