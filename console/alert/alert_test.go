package alert

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// sent records alerts.
type sent struct {
	wants []webhook.AlertKind
	texts map[webhook.AlertKind]string
}

func (s *sent) Wants(_ uuid.UUID, kind webhook.AlertKind) bool { return slices.Contains(s.wants, kind) }
func (s *sent) NoShowPercent(uuid.UUID) int                    { return 30 }
func (s *sent) Send(_ context.Context, org uuid.UUID, kind webhook.AlertKind, slug, text string) error {
	s.texts[kind] = org.String() + " " + slug + " " + text
	return nil
}

func (s *sent) SendOnce(context.Context, uuid.UUID, webhook.AlertKind, string, string) error {
	panic("no token is checked")
}

// none is what is known of issuers in rooms without.
func none(*room.Room) []issuers.Finding { return nil }

// TestRooms checks which alerts are sent for a room, and only to organizations that want them.
func TestRooms(t *testing.T) {
	t.Parallel()
	rooms := servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)))
	r, err := rooms.Create(t.Context(), room.Config{Slug: "sale", Settings: room.Settings{MaxWaiting: 1}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	share := func(f float64) *float64 { return &f }
	good := live.Figures{At: start, Phase: room.PhaseServing, Drawn: 500, Called: 100, Admitted: 90, NoShows: 10,
		Outflow: live.Outflow{PerMinute: 60, Minute: share(59)}}
	good.Rates.Recent = share(0.1)
	var now live.Figures
	alerts := &sent{texts: map[webhook.AlertKind]string{}}
	computed := 0
	var found []issuers.Finding
	w := New(Options{
		Rooms: rooms, Sender: alerts, Log: slog.New(slog.DiscardHandler),
		Figures: func(context.Context, string) (live.Figures, error) { computed++; return now, nil },
		Issuers: func(*room.Room) []issuers.Finding { return found },
	})
	check := func(f live.Figures, want ...webhook.AlertKind) {
		t.Helper()
		now = f
		clear(alerts.texts)
		w.check(t.Context())
		if got := slices.Sorted(maps.Keys(alerts.texts)); !slices.Equal(got, want) {
			t.Errorf("alerts %q, want %q", got, want)
		}
	}
	at := func(f live.Figures, after time.Duration) live.Figures { f.At = start.Add(after); return f }
	few := good
	few.Outflow.Minute = share(20)

	check(few)
	if computed != 0 {
		t.Error("figures are computed although no alert is wanted")
	}
	alerts.wants = kinds
	check(good)
	check(few)
	check(at(few, time.Minute))
	check(at(few, 3*time.Minute), webhook.AlertOutflowBehind)
	if text := alerts.texts[webhook.AlertOutflowBehind]; !strings.Contains(text,
		"sale 20 people a minute are admitted, but the outflow is 60 a minute, since 1 Jan 2030, 12:00 UTC") {
		t.Errorf("alert %q", text)
	}
	check(at(good, 4*time.Minute)) // recovered: the time starts again
	check(at(few, 5*time.Minute))
	for name, change := range map[string]func(*live.Figures){
		"paused":      func(f *live.Figures) { f.Phase = room.PhasePaused },
		"pulled":      func(f *live.Figures) { f.Outflow.Pull = true },
		"full site":   func(f *live.Figures) { f.Outflow.MaxActive, f.Active = 50, 50 },
		"none drawn":  func(f *live.Figures) { f.Called = f.Drawn },
		"no rate yet": func(f *live.Figures) { f.Outflow.Minute = nil },
	} {
		f := at(few, time.Hour)
		change(&f)
		clear(w.behind)
		w.behind[r.ID] = start
		check(f)
		if len(w.behind) != 0 {
			t.Errorf("%s: still behind", name)
		}
	}
	noShows := good
	noShows.Rates.Recent = share(0.31)
	check(noShows, webhook.AlertNoShows)
	noShows.Admitted, noShows.NoShows = 5, 5
	check(noShows)
	alerts.wants = []webhook.AlertKind{webhook.AlertOutflowBehind}
	noShows.Admitted = 100
	check(noShows)

	alerts.wants = kinds
	if _, err := r.Join(t.Context(), fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})); err != nil {
		t.Fatal(err)
	}
	for !r.IsFull() {
		time.Sleep(10 * time.Millisecond)
	}
	check(good, webhook.AlertLineFull)
	away := issuers.Finding{Method: "club", Name: "club.example.org", State: issuers.Away, Reason: "the connection failed", Since: start}
	other := away
	other.Method, other.State = "phone", issuers.Absent
	found, alerts.wants = []issuers.Finding{away, other}, []webhook.AlertKind{webhook.AlertIssuerAway}
	check(good, webhook.AlertIssuerAway)
	if text := alerts.texts[webhook.AlertIssuerAway]; strings.Contains(text, "phone") || !strings.Contains(text, "sale The issuer at "+
		"club.example.org has not answered since 12:00 UTC: the connection failed. New visitors cannot show club") {
		t.Errorf("alert %q", text)
	}
	found = []issuers.Finding{other}
	check(good)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for !r.Snapshot().Ended {
		time.Sleep(10 * time.Millisecond)
	}
	check(good)
}

// TestRegisterHeld checks that an alert says when the database lacks entries of the log of rooms.
func TestRegisterHeld(t *testing.T) {
	t.Parallel()
	rooms := servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)))
	if _, err := rooms.Create(t.Context(), room.Config{Slug: "sale"}); err != nil {
		t.Fatal(err)
	}
	alerts := &sent{texts: map[webhook.AlertKind]string{}, wants: []webhook.AlertKind{webhook.AlertForkSeen}}
	w := New(Options{Rooms: rooms, Sender: alerts, Issuers: none, Log: slog.New(slog.DiscardHandler)})
	w.check(t.Context())
	if len(alerts.texts) != 0 {
		t.Errorf("alerts %q", alerts.texts)
	}
	seen := pglog.Mark{Size: 1_000, Root: audit.LeafHash([]byte("another"))}
	if err := rooms.Logs.Hold(t.Context(), pgroom.RegisterID, seen, "another server"); err != nil {
		t.Fatal(err)
	}
	rooms.Register.Suspect()
	if _, err := rooms.Register.Checkpoint(t.Context()); err == nil {
		t.Fatal("the log of rooms is shown")
	}
	w.check(t.Context())
	if text := alerts.texts[webhook.AlertForkSeen]; !strings.Contains(text, "proofline recover /rooms") {
		t.Errorf("alert %q", text)
	}
}
