package alarm

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// told notes what people are told.
type told struct {
	wants []hook.AlertKind
	texts map[hook.AlertKind]string
}

func (t *told) Wants(_ uuid.UUID, kind hook.AlertKind) bool { return slices.Contains(t.wants, kind) }
func (t *told) NoShowPercent(uuid.UUID) int                 { return 30 }
func (t *told) Alert(_ context.Context, org uuid.UUID, kind hook.AlertKind, slug, text string) error {
	t.texts[kind] = org.String() + " " + slug + " " + text
	return nil
}

func (t *told) AlertOnce(context.Context, uuid.UUID, hook.AlertKind, string, string) error {
	panic("no token is looked at")
}

// TestAlarm tells of what there is to tell, and to those alone who want it.
func TestAlarm(t *testing.T) {
	t.Parallel()
	rooms := servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)))
	r, err := rooms.Create(t.Context(), room.Config{Slug: "sale", Settings: room.Settings{MaxWaiting: 1}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	share := func(f float64) *float64 { return &f }
	calm := live.Figures{At: start, Phase: room.PhaseServing, Drawn: 500, Called: 100, Admitted: 90, NoShows: 10, Outflow: live.Outflow{PerMinute: 60, Minute: share(59)}}
	calm.Rates.Recent = share(0.1)
	var now live.Figures
	people := &told{texts: map[hook.AlertKind]string{}}
	asked := 0
	a := New(Options{
		Rooms: rooms, Teller: people, Log: slog.New(slog.DiscardHandler),
		Figures: func(context.Context, string) (live.Figures, error) { asked++; return now, nil },
	})
	look := func(f live.Figures, want ...hook.AlertKind) {
		t.Helper()
		now = f
		clear(people.texts)
		a.look(t.Context())
		if got := slices.Sorted(maps.Keys(people.texts)); !slices.Equal(got, want) {
			t.Errorf("told of %q, want %q", got, want)
		}
	}
	at := func(f live.Figures, after time.Duration) live.Figures { f.At = start.Add(after); return f }
	few := calm
	few.Outflow.Minute = share(20)

	look(few)
	if asked != 0 {
		t.Error("figures are made for nobody")
	}
	people.wants = kinds
	look(calm)
	look(few)
	look(at(few, time.Minute))
	look(at(few, 3*time.Minute), hook.AlertOutflowBehind)
	if text := people.texts[hook.AlertOutflowBehind]; !strings.Contains(text, "sale 20 people a minute go in, and the outflow is 60 a minute, since 12:00:00 UTC") {
		t.Errorf("told %q", text)
	}
	look(at(calm, 4*time.Minute)) // it has recovered, and begins anew
	look(at(few, 5*time.Minute))
	for name, change := range map[string]func(*live.Figures){
		"paused":        func(f *live.Figures) { f.Phase = room.PhasePaused },
		"pulled":        func(f *live.Figures) { f.Outflow.Pull = true },
		"full site":     func(f *live.Figures) { f.Outflow.MaxActive, f.Active = 50, 50 },
		"nobody drawn":  func(f *live.Figures) { f.Called = f.Drawn },
		"nothing known": func(f *live.Figures) { f.Outflow.Minute = nil },
	} {
		f := at(few, time.Hour)
		change(&f)
		clear(a.behind)
		a.behind[r.ID] = start
		look(f)
		if len(a.behind) != 0 {
			t.Errorf("%s: still behind", name)
		}
	}
	none := calm
	none.Rates.Recent = share(0.31)
	look(none, hook.AlertNoShows)
	none.Admitted, none.NoShows = 5, 5
	look(none)
	people.wants = []hook.AlertKind{hook.AlertOutflowBehind}
	none.Admitted = 100
	look(none)

	people.wants = kinds
	if _, err := r.Join(t.Context(), fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})); err != nil {
		t.Fatal(err)
	}
	for !r.IsFull() {
		time.Sleep(10 * time.Millisecond)
	}
	look(calm, hook.AlertLineFull)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for !r.Snapshot().Ended {
		time.Sleep(10 * time.Millisecond)
	}
	look(calm)
}
