package rehearse

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// sale is a room that opens in the far future and calls quickly once it has started.
func sale(slug string) room.Config {
	opens := time.Now().AddDate(1, 0, 0)
	starts := opens.Add(30 * time.Minute)
	claim := room.Duration(1500 * time.Millisecond)
	return room.Config{
		Slug: slug, Title: "Summer sale", Opens: &opens, Starts: &starts,
		Windows: []room.WindowRule{{From: &opens, Length: room.Duration(30 * time.Minute)},
			{From: &starts, Length: room.Duration(time.Minute)}},
		Outflow: room.Outflow{PerMinute: 6_000}, Claim: &claim, Beacon: "none",
	}
}

// quick is a plan that takes seconds, with some no-shows.
func quick() Plan {
	p := simulate.Default()
	p.Arrivals.Shape, p.Arrivals.HalfLife = simulate.Early, simulate.Duration(300*time.Millisecond)
	p.People.Reaction, p.People.Claims, p.People.NoShow = simulate.Duration(100*time.Millisecond), simulate.Duration(50*time.Millisecond), 0.3
	p.Seed = 3
	return Plan{Visitors: 60, Crowd: &p, Before: time.Second, Window: time.Second}
}

func owner(org byte) pgroom.Owner { return pgroom.Owner{Org: uuid.UUID{15: org}} }

// TestRehearsal plays a whole rehearsal in real time.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.lingers = 700 * time.Millisecond
	of := pgroom.RoomID("sale")
	who := owner(7)
	who.RehearsalOf = &of
	started, err := s.Start(t.Context(), who, sale("sale"), quick())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(started.Slug, "sale-rehearsal-") || started.Title != "Rehearsal: Summer sale" ||
		started.Over || started.Visitors != 60 {
		t.Errorf("%+v", started)
	}
	record, err := s.store.Get(t.Context(), started.Slug)
	if err != nil {
		t.Fatal(err)
	}
	if record.Org != who.Org || record.RehearsalOf == nil || *record.RehearsalOf != of || record.Host != nil {
		t.Errorf("owner: %+v", record.Owner)
	}
	r, err := s.rooms.Get(t.Context(), started.Slug)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rehearsal is over", func() bool { return s.List(who.Org)[0].Over })
	end := s.List(who.Org)[0]
	if !r.Snapshot().Ended {
		t.Error("the room still runs")
	}
	n := r.Snapshot().Counts
	got := [5]int{end.Joined, end.Admitted, end.Missed, end.Left, end.Failed}
	want := [5]int{int(n.Arrivals), int(n.Admitted), int(n.NoShows), int(n.Left), 0}
	if got != want || end.Joined != 60 || end.Called != end.Admitted+end.Missed || end.Admitted < 30 || end.Missed < 8 {
		t.Errorf("%+v: joined, admitted, missed, left, failed; the room has %v", end.Progress, want)
	}
	if end.Ends.After(time.Now()) || end.Ends.Sub(end.Started) < 3*time.Second {
		t.Errorf("it was over after %s", end.Ends.Sub(end.Started))
	}
}

// TestVisitors plays four visitors, each certain to do one thing.
func TestVisitors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.lingers = 0
	one, err := s.reserve(owner(3))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := Copy(sale("sale"), now.Add(time.Second), now.Add(lasts), time.Second, time.Second)
	r, err := s.rooms.CreateFor(t.Context(), one.owner, c)
	if err != nil {
		t.Fatal(err)
	}
	one.begin(r, c, Plan{Visitors: 4}, now)
	one.play(s.Rehearsals, []simulate.Guest{
		{Patience: simulate.Forever},
		{Arrives: simulate.Duration(1100 * time.Millisecond), Patience: simulate.Forever, Bot: true},
		{Patience: simulate.Forever, Claims: simulate.Forever},
		{Patience: 0},
	})
	s.over(one)
	s.work.Done()
	got := s.List(owner(3).Org)[0].Progress
	if want := (Progress{Joined: 4, Called: 3, Admitted: 2, Missed: 1, Left: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := r.Snapshot().Counts; n.Left != 1 || n.NoShows != 1 || n.Admitted != 2 {
		t.Errorf("the room has %+v", n)
	}
}

// TestStop ends a running rehearsal.
func TestStop(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	who := owner(1)
	one, err := s.Start(t.Context(), who, sale("sale"), Plan{Visitors: 2_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), owner(2).Org, one.Slug); !errors.Is(err, ErrUnknown) {
		t.Errorf("another organization: %v", err)
	}
	eventually(t, "visitors join", func() bool { return s.List(who.Org)[0].Joined > 20 })
	if _, err := s.Start(t.Context(), who, sale("sale"), Plan{}); !errors.Is(err, ErrRunning) {
		t.Errorf("a second one: %v", err)
	}
	if err := s.Stop(t.Context(), who.Org, one.Slug); err != nil {
		t.Fatal(err)
	}
	if list := s.List(who.Org); len(list) != 1 || !list[0].Over || list[0].Joined == 2_000 {
		t.Errorf("%+v", list)
	}
	r, err := s.rooms.Get(t.Context(), one.Slug)
	if err != nil || !r.Snapshot().Ended {
		t.Errorf("the room still runs: %v", err)
	}
	if err := s.Stop(t.Context(), who.Org, one.Slug); !errors.Is(err, ErrUnknown) {
		t.Errorf("stopped again: %v", err)
	}
	if list := s.List(owner(2).Org); list != nil {
		t.Errorf("another organization sees %+v", list)
	}
}

// TestRoomEnds has the organizer end the room.
func TestRoomEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one, err := s.Start(t.Context(), owner(1), sale("sale"), Plan{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.rooms.Get(t.Context(), one.Slug)
	if err == nil {
		err = r.End(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rehearsal is over", func() bool { return s.List(owner(1).Org)[0].Over })
}

// TestTimeIsUp has a rehearsal whose visitors are far from done.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.lasts = 3 * time.Second
	if _, err := s.Start(t.Context(), owner(1), sale("sale"), Plan{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rehearsal is over", func() bool { return s.List(owner(1).Org)[0].Over })
}

// TestLimits checks the limits on rehearsals and closes the server's.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if _, err := s.Start(t.Context(), owner(1), room.Config{Slug: "sale", Beacon: "drand:none-such"},
		Plan{}); err == nil {
		t.Error("a room was created with an unknown beacon")
	}
	var first Rehearsal
	for i := range byte(maxRunning) {
		one, err := s.Start(t.Context(), owner(i+1), sale("sale"), Plan{})
		if err != nil {
			t.Fatal(err) // the failed start above must not count
		}
		if i == 0 {
			first = one
		}
	}
	if _, err := s.Start(t.Context(), owner(9), sale("sale"), Plan{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), owner(9), sale("sale"), Plan{}); !errors.Is(err, ErrStopping) {
		t.Errorf("after the close: %v", err)
	}
	r, err := s.rooms.Get(t.Context(), first.Slug)
	if err != nil || !r.Snapshot().Ended {
		t.Errorf("a room runs on after the close: %v", err)
	}
}

func TestPlanProblems(t *testing.T) {
	t.Parallel()
	wrong := simulate.Default()
	wrong.People.NoShow = 2
	for field, p := range map[string]Plan{
		"visitors": {Visitors: 9}, "before": {Before: time.Hour}, "window": {Window: time.Millisecond},
		"crowd.people.no_show": {Crowd: &wrong}, "script": {Script: Script{Tickets: MaxTickets + 1}},
		"networks": {Script: Script{Networks: -1}},
	} {
		_, err := New(nil, nil, nil).Start(t.Context(), owner(1), sale("sale"), p)
		wrong, ok := errors.AsType[*invalid.Error](err)
		if !ok || len(wrong.Problems) != 1 || wrong.Problems[0].Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if problems := (Plan{}).withDefaults().problems(); problems != nil {
		t.Error(problems)
	}
}

// TestGuests checks that all visitors of long plans arrive within minutes.
func TestGuests(t *testing.T) {
	t.Parallel()
	long := simulate.Default()
	long.Arrivals.Shape, long.Arrivals.Over = simulate.Steady, simulate.Duration(5*time.Hour)
	for what, crowd := range map[string]*simulate.Plan{"default": nil, "five hours": &long} {
		p := Plan{Visitors: 500, Crowd: crowd}.withDefaults()
		now := time.Now()
		c := Copy(sale("sale"), now.Add(lead), now.Add(lasts), p.Before, p.Window)
		list := p.guests(c, &Entrance{Door: simulate.Default().Door})
		bots, early := 0, 0
		for _, g := range list {
			if time.Duration(g.Arrives) > p.Before+latest+time.Second || time.Duration(g.Stay) > maxStay {
				t.Fatalf("%s: %+v", what, g)
			}
			if g.Bot {
				bots++
			}
			if time.Duration(g.Arrives) < p.Before {
				early++
			}
		}
		if len(list) != 500 || bots != map[string]int{"default": 25, "five hours": 50}[what] || early < 25 {
			t.Errorf("%s: %d guests, %d bots, %d early", what, len(list), bots, early)
		}
	}
}

// TestSlowMachine starts a rehearsal whose copy would open before it exists.
func TestSlowMachine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.lead = time.Millisecond
	one, err := s.Start(t.Context(), owner(1), sale("slow"), quick())
	if err != nil {
		t.Fatal(err)
	}
	if lead := one.Opens.Sub(one.Started); lead <= time.Millisecond {
		t.Errorf("the copy opens %s after it was made", lead)
	}
}
