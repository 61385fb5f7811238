package rehearse

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
)

// shape is a schedule in seconds since the opening.
type shape struct {
	Opens, Starts float64 // since now
	Windows       [][2]float64
	Claim         float64
}

func shapeOf(c room.Config, now time.Time) shape {
	s := shape{Opens: c.Opens.Sub(now).Seconds(), Starts: c.Starts.Sub(now).Seconds(),
		Claim: time.Duration(*c.Claim).Seconds()}
	for _, w := range c.Windows {
		s.Windows = append(s.Windows, [2]float64{w.From.Sub(*c.Opens).Seconds(), time.Duration(w.Length).Seconds()})
	}
	return s
}

// TestCopyOfSlots: a copy has as many slots as its original, and the same door and lots.
func TestCopyOfSlots(t *testing.T) {
	t.Parallel()
	opens := time.Date(2030, 5, 1, 11, 30, 0, 0, time.UTC)
	starts, slots := opens.Add(30*time.Minute), room.Duration(7*time.Minute)
	base := room.Config{Slug: "sale", Opens: &opens, Starts: &starts, Slots: &slots, Lots: []string{"club"}, Party: 3,
		Methods: []credential.Method{issuertest.Signed("club", 7).Method},
		Lanes:   []room.LaneRule{{Name: fairness.General, Weight: 1, Needs: []string{"club"}}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := Copy(base, now.Add(lead), now.Add(lasts), maxBefore, maxWindow)
	if got.Slots == nil || *got.Slots != room.Duration(12*time.Second) { // 5 in a minute
		t.Errorf("slots of %v", got.Slots)
	}
	if !cmp.Equal(got.Methods, base.Methods) || !cmp.Equal(got.Lanes, base.Lanes) || !cmp.Equal(got.Lots, base.Lots) || got.Party != 3 {
		t.Errorf("%+v", got)
	}
	if problems := got.Problems(now); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	opens := time.Date(2030, 5, 1, 11, 30, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := opens.Add(d); return &x }
	length := func(d time.Duration) room.Duration { return room.Duration(d) }
	claim := room.Duration(10 * time.Second)
	for what, c := range map[string]struct {
		room room.Config
		want shape
	}{
		"no settings": {room.Config{}, shape{5, 5, [][2]float64{{0, 30}}, 60}},
		"defaults": {
			room.Config{Opens: at(0), Starts: at(30 * time.Minute)},
			shape{5, 65, [][2]float64{{0, 60}, {60, 30}}, 60},
		},
		"short enough": {
			room.Config{Opens: at(0), Starts: at(20 * time.Second),
				Windows: []room.WindowRule{{Length: length(20 * time.Second)},
					{From: at(20 * time.Second), Length: length(5 * time.Second)}}, Claim: &claim},
			shape{5, 25, [][2]float64{{0, 20}, {20, 5}}, 10},
		},
		"windows before the start in proportion": {
			room.Config{Opens: at(0), Starts: at(time.Hour),
				Windows: []room.WindowRule{{Length: length(10 * time.Minute)},
					{From: at(40 * time.Minute), Length: length(20 * time.Minute)}, {From: at(time.Hour),
						Length: length(time.Minute)}}},
			shape{5, 65, [][2]float64{{0, 10}, {40, 20}, {60, 30}}, 60},
		},
		"rules far apart": {
			room.Config{Opens: at(0), Windows: []room.WindowRule{{Length: length(time.Second)},
				{From: at(time.Minute), Length: length(5 * time.Second)}, {From: at(3 * time.Hour),
					Length: length(time.Hour)}}},
			shape{5, 5, [][2]float64{{0, 1}, {60, 5}, {180, 30}}, 60},
		},
		"a window across the start": {
			room.Config{Opens: at(0), Starts: at(time.Minute),
				Windows: []room.WindowRule{{Length: length(2 * time.Hour)}}},
			shape{5, 65, [][2]float64{{0, 90}}, 60},
		},
		"too short to press": {
			room.Config{Opens: at(0), Starts: at(100 * time.Hour),
				Windows: []room.WindowRule{{Length: length(time.Second)},
					{From: at(time.Second), Length: length(100*time.Hour - time.Second)}}},
			shape{5, 65, [][2]float64{{0, 60}}, 60},
		},
	} {
		c.room.Slug = "sale"
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		got := Copy(c.room, now.Add(lead), now.Add(lasts), maxBefore, maxWindow)
		if diff := cmp.Diff(c.want, shapeOf(got, now)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if problems := simulated(got).Problems(); problems != nil {
			t.Errorf("%s: %v", what, problems)
		}
		if got.Outflow != c.room.Outflow || got.Beacon != c.room.Beacon || *got.Closes != now.Add(lasts) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func simulated(c room.Config) *simulate.Plan {
	p := simulate.Default()
	p.Room = SimulatedRoom(c)
	return &p
}

func TestNames(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, slug := range []string{"sale", "", strings.Repeat("a", 63), strings.Repeat("ab-", 20) + "x"} {
		got := copySlug(slug)
		if !form.MatchString(got) || !strings.Contains(got, "rehearsal-") ||
			!strings.HasPrefix(got, slug[:min(len(slug), 40)]) {
			t.Errorf("%q: %q", slug, got)
		}
	}
	if one, two := copySlug("sale"), copySlug("sale"); one == two {
		t.Error("two copies have the same slug")
	}
	for title, want := range map[string]string{"": "Rehearsal: sale", "Sale": "Rehearsal: Sale",
		"Rehearsal: Sale": "Rehearsal: Sale", strings.Repeat("\u00e9", 200): prefix + strings.Repeat("\u00e9", 189)} {
		if got := copyTitle(room.Config{Slug: "sale", Title: title}); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
}

func TestSimulatedRoom(t *testing.T) {
	t.Parallel()
	opens := time.Date(2030, 5, 1, 11, 30, 0, 0, time.UTC)
	starts, closes := opens.Add(time.Hour), opens.Add(3*time.Hour)
	after := simulate.Duration(3 * time.Hour)
	got := SimulatedRoom(room.Config{Starts: &starts, Closes: &closes,
		Windows: []room.WindowRule{{From: &opens, Length: room.Duration(time.Minute)}}, Outflow: room.Outflow{PerMinute: 7, MaxActive: 9}, Beacon: "none"})
	want := simulate.Room{
		Starts: simulate.Duration(time.Hour), Closes: &after,
		Windows: []simulate.WindowRule{{Length: simulate.Duration(time.Minute)}},
		Outflow: simulate.Outflow{PerMinute: 7, MaxActive: 9}, Claim: simulate.Duration(room.DefaultClaim),
		Session: simulate.Duration(room.DefaultSession),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := SimulatedRoom(room.Config{}); got.Outflow.PerMinute != room.DefaultPerMinute || got.Draw == 0 ||
		got.Starts != 0 {
		t.Errorf("%+v", got)
	}
}
