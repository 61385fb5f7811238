package live

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
)

// TestFigures follows a room: ten join, nine have a drawn place; two are admitted, one leaves, the
// others are no-shows.
func TestFigures(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := quick("sale")
	c.Outflow.MaxActive = 9
	r := create(t, s.rooms, c)
	figures := func() Figures {
		t.Helper()
		s.live.sample(t.Context())
		f, err := s.live.Figures(t.Context(), "sale")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := figures()
	if f.Slug != "sale" || f.Title != "Title of sale" || f.Phase != room.PhaseServing || f.Closes != nil ||
		f.Rates.Recent != nil || f.Rates.Overall != nil || f.Rate != nil || f.Beacon != nil || f.Joining == nil {
		t.Errorf("of an empty room %+v", f)
	}
	people := join(t, r, 3)
	eventually(t, "three visitors are called", func() bool { return r.Snapshot().Counts.Waiting == 3 })
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim(t, r, people[:2])
	waits := join(t, r, 5)
	if err := r.Leave(t.Context(), waits[0].ticket, waits[0].secret); err != nil {
		t.Fatal(err)
	}
	f = figures()
	want := Figures{Arrivals: 8, Waiting: 4, Called: 3, Expected: 1, Admitted: 2, Left: 1, Active: 3}
	got := Figures{Arrivals: f.Arrivals, Waiting: f.Waiting, Called: f.Called, Expected: f.Expected,
		Admitted: f.Admitted, NoShows: f.NoShows, Left: f.Left, Active: f.Active}
	if diff := cmp.Diff(want, got); diff != "" || f.Phase != room.PhasePaused || f.Joining != nil {
		t.Errorf("in a pause (-want +got), joining %v\n%s", f.Joining, diff)
	}
	inWindows := uint64(0)
	for _, w := range f.Windows {
		inWindows += w.Waiting
	}
	if inWindows != 5 || f.Earlier != 0 { // a visitor who left keeps the place
		t.Errorf("%d places wait in windows %+v, and %d in earlier ones", inWindows, f.Windows, f.Earlier)
	}
	if err := r.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no-shows are skipped", func() bool { return r.Snapshot().Counts.NoShows == 5 })
	f = figures()
	near(t, "overall no-show rate", f.Rates.Overall, 5.0/7, 0.001)
	near(t, "recent no-show rate", f.Rates.Recent, 5.0/7, 0.001)
	near(t, "admitted a minute", f.Outflow.Minute, 60, 60) // two, within some seconds
	if f.Waiting != 0 || f.Transcript.Entries != r.Snapshot().Size || f.Transcript.AppendMS <= 0 ||
		!f.Database.Answers || f.Database.Max < 1 {
		t.Errorf("in the end %+v", f)
	}
	text, err := json.Marshal(f)
	var back Figures
	if err := errors.Join(err, json.Unmarshal(text, &back)); err != nil || !cmp.Equal(f, back) {
		t.Errorf("read back, %v: %s", err, cmp.Diff(f, back))
	}
	if _, err := s.live.Figures(t.Context(), "nowhere"); !errors.Is(err, room.ErrNotFound) {
		t.Errorf("of no room: %v", err)
	}
}

// TestLanesAndSeats checks the totals of lanes and seats, and that a party skipped as too large no longer counts as
// in line.
func TestLanesAndSeats(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := quick("sale")
	hour := room.Duration(time.Hour)
	c.Lanes = []room.LaneRule{{Name: fairness.General, Weight: 3}, {Name: "club", Weight: 1}}
	c.Party, c.Seats, c.Claim, c.MaxWaiting = 4, 5, &hour, 2
	r := create(t, s.rooms, c)
	figures := func() Figures {
		t.Helper()
		f, err := s.live.Figures(t.Context(), "sale")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	joinLane := func(lane fairness.Lane, seats uint32) (v visitor) {
		t.Helper()
		_, _ = rand.Read(v.secret[:])
		v.ticket = fairness.NewTicket(r.Origin, v.secret)
		if _, err := r.JoinLane(t.Context(), v.ticket, lane, seats); err != nil {
			t.Fatal(err)
		}
		return v
	}
	three := joinLane("club", 3)
	eventually(t, "the party of three is called", func() bool { return r.Snapshot().Counts.Waiting == 1 })
	joinLane(fairness.General, 4)
	eventually(t, "the party of four is drawn", func() bool { return r.Snapshot().Counts.Ready == 1 })
	if f := figures(); !cmp.Equal(f.Seats, &Seats{5, 7, 3, 0}) || !r.IsFull() {
		t.Errorf("while the party of three is called: %+v", f.Seats)
	}
	claim(t, r, []visitor{three})
	eventually(t, "the party of four is skipped", func() bool { return r.Snapshot().Counts.TooLarge == 1 })
	percent := func(f float64) *float64 { return &f }
	f := figures()
	lanes := []Lane{{fairness.General, percent(0.75), percent(0), 1, 0, 0, 0, 0}, {"club", percent(0.25), percent(1), 1, 0, 1, 1, 0}}
	if diff := cmp.Diff(lanes, f.Lanes) + cmp.Diff(&Seats{5, 7, 0, 3}, f.Seats); diff != "" || f.TooLarge != 1 || f.Waiting != 0 {
		t.Errorf("in the end, %d too large, %d in line (-want +got)\n%s", f.TooLarge, f.Waiting, diff)
	}
	if r.IsFull() {
		t.Error("a skipped party fills the room")
	}
}

// TestJoining checks that a visitor who joins now is expected behind all others, and earlier the
// more no-shows there are.
func TestJoining(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := quick("sale")
	starts := time.Now().Add(time.Hour).Truncate(time.Second)
	c.Starts, c.Outflow.PerMinute, c.Windows = &starts, 60, []room.WindowRule{{Length: room.Duration(time.Second)}}
	r := create(t, s.rooms, c)
	join(t, r, 60)
	snapshot := *r.Snapshot()
	none := joining(&snapshot, r.Now())
	snapshot.Counts.NoShows, snapshot.Counts.Admitted = 90, 90 // doubt is 20
	some := joining(&snapshot, r.Now())
	if none == nil || some == nil {
		t.Fatalf("no expected time: %v, %v", none, some)
	}
	if none.Earliest.Before(starts) || none.Latest.Before(starts.Add(75*time.Second)) ||
		none.Latest.After(starts.Add(80*time.Second)) {
		t.Errorf("expected from %v to %v, and the room starts at %v", none.Earliest, none.Latest, starts)
	}
	ahead := none.Earliest.Sub(starts)
	if got, want := some.Earliest.Sub(starts), ahead*55/100; (got-want).Abs() > 2*time.Millisecond ||
		!some.Latest.Equal(none.Latest) {
		t.Errorf("with no-shows at %v, without at %v, at the latest %v and %v", got, ahead, some.Latest, none.Latest)
	}
	for name, change := range map[string]func(*room.Snapshot){
		"paused": func(s *room.Snapshot) { s.Paused = true }, "ended": func(s *room.Snapshot) { s.Ended = true },
		"pulled": func(s *room.Snapshot) { s.Pull = true },
	} {
		changed := *r.Snapshot()
		change(&changed)
		if got := joining(&changed, r.Now()); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := joining(r.Snapshot(), r.Created().Add(-time.Hour)); got != nil {
		t.Errorf("before the opening: %+v", got)
	}
	v := r.Metrics()
	v.HasBeacon = true
	for late, want := range map[time.Duration]bool{0: true, lateBeacon: true, lateBeacon + time.Second: false} {
		v.Awaited = []evidence.Awaited{{Due: v.Now.Add(-late)}}
		if f := s.live.figures(s.live.track(r), &v); (f.Joining != nil) != want || (f.Next.Called != nil) != want {
			t.Errorf("with randomness %s late: joining %v, next %+v", late, f.Joining, f.Next)
		}
	}
}

// TestWorkLate: the round that work is done for is late until it is in the transcript, or the room has ended.
func TestWorkLate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	work := room.Work{Due: now.Add(-time.Minute)}
	v := room.Metrics{Now: now, HasBeacon: true, Snapshot: &room.Snapshot{Door: &room.Door{Work: &work}}}
	if b := beaconOf(&v); b.WorkLateMS != 60_000 || b.LateMS != 0 {
		t.Errorf("%+v", b)
	}
	v.Snapshot.Ended = true
	if b := beaconOf(&v); b.WorkLateMS != 0 {
		t.Errorf("after the end: %+v", b)
	}
	v.Snapshot.Ended, work.Due = false, now.Add(time.Minute)
	if b := beaconOf(&v); b.WorkLateMS != 0 {
		t.Errorf("before the round: %+v", b)
	}
	work.Due, work.Signature = now.Add(-time.Minute), []byte{1}
	if b := beaconOf(&v); b.WorkLateMS != 0 {
		t.Errorf("in the transcript: %+v", b)
	}
}

// TestMinutes collects samples at simulated times: one row per minute, none for a minute without
// changes, and one when the room ends.
func TestMinutes(t *testing.T) {
	t.Parallel()
	l := New(Options{})
	tr := &track{room: &room.Room{ID: uuid.New()}}
	begin := time.Unix(60_000_000, 0)
	v := room.Metrics{Snapshot: &room.Snapshot{}}
	v.Snapshot.Outflow.PerMinute = 60
	for second := range 301 {
		v.Now = begin.Add(time.Duration(second) * time.Second)
		n := &v.Snapshot.Counts
		switch {
		case second == 0:
		case second == 30:
			n.Arrivals += 40
		case second < 60:
			n.Arrivals++
		case second > 185 && second < 190:
			n.Called++
			n.Waiting++
			v.Active++
		}
		v.Snapshot.Passed, n.InLine = n.Called, n.Arrivals-n.Called
		v.Snapshot.Ended = second == 300
		if ended := l.collect(tr, &v); ended != (second == 300) {
			t.Fatalf("second %d: ended is %t", second, ended)
		}
	}
	if l.collect(tr, &v) {
		t.Error("it ended again")
	}
	row := func(minute int, arrivals, called, peak int64) pglive.Minute {
		return pglive.Minute{
			Room: tr.room.ID, At: begin.Add(time.Duration(minute) * time.Minute).UTC(), Arrivals: arrivals,
			Called: called, Waiting: arrivals - called, Active: called, Peak: peak, PerMinute: 60,
		}
	}
	want := []pglive.Minute{row(0, 98, 0, 40), row(1, 98, 0, 0), row(3, 98, 4, 0), row(5, 98, 4, 0)}
	if diff := cmp.Diff(want, l.waiting); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
	over := New(Options{})
	if !over.collect(&track{room: tr.room}, &v) || len(over.waiting) != 0 {
		t.Errorf("of a room that had ended before, rows %v", over.waiting)
	}
}

// TestStored samples a room on two nodes until it has ended: its minutes are stored once, and its
// summary is computed.
func TestStored(t *testing.T) {
	t.Parallel()
	one := newServer(t)
	two := one.node(t, "two")
	r := create(t, one.rooms, quick("stored"))
	if _, err := two.rooms.Get(t.Context(), "stored"); err != nil {
		t.Fatal(err)
	}
	claim := func(v visitor) func() bool {
		return func() bool { _, err := r.Claim(t.Context(), v.ticket, v.secret); return err == nil }
	}
	run(t, one.live.Run)
	run(t, two.live.Run)
	if _, err := one.live.Summary(t.Context(), "stored"); !errors.Is(err, ErrNotEnded) {
		t.Errorf("summary of a running room: %v", err)
	}
	for _, v := range join(t, r, 3) {
		eventually(t, "a claim succeeds", claim(v))
	}
	eventually(t, "there are samples", func() bool {
		s, err := two.live.Recent(t.Context(), "stored")
		return err == nil && len(s.At) > 0 && s.Active[len(s.At)-1] == 3
	})
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last minute is stored", func() bool {
		list, err := two.live.History(t.Context(), "stored", time.Time{}, time.Time{}, 0)
		return err == nil && len(list) > 0 && list[len(list)-1].Admitted == 3
	})
	eventually(t, "the summary is stored", func() bool {
		_, err := two.live.Store.Summary(t.Context(), r.ID)
		return err == nil
	})
	s, err := two.live.Summary(t.Context(), "stored")
	if err != nil || s.Slug != "stored" || s.Arrivals != 3 || s.Admitted != 3 || s.ToAdmission.People != 3 ||
		s.Ended.IsZero() || s.Entries != r.Snapshot().Size {
		t.Errorf("summary %+v, %v", s, err)
	}
	e, err := one.live.Export(t.Context(), "stored")
	if err != nil || e.Title != "Title of stored" || e.Summary == nil || len(e.Minutes) == 0 ||
		!cmp.Equal(*e.Summary, s) {
		t.Errorf("export %+v, %v", e, err)
	}
	eventually(t, "both nodes are seen", func() bool {
		f, err := one.live.Figures(t.Context(), "stored")
		return err == nil && len(f.Nodes) == 2 && f.Nodes[0].Self && f.Nodes[1].Name == "two" && f.Nodes[1].Healthy &&
			!f.Nodes[1].Lost && f.Nodes[1].Version == "v1.2.3" &&
			f.Nodes[1].Refused["joins"] == 7 && f.Nodes[1].AllRefused() == 12
	})
}

// TestSummaryAsked requests the summary of a room that ended unsampled: it is computed then.
func TestSummaryAsked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := create(t, s.rooms, quick("asked"))
	join(t, r, 2)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.live.Summary(t.Context(), "asked"); err != nil || got.Arrivals != 2 || got.Admitted != 0 ||
			got.ToCall.P50 != nil && got.Called == 0 {
			t.Errorf("summary %+v, %v", got, err)
		}
	}
	if _, err := s.live.Summary(t.Context(), "nowhere"); !errors.Is(err, room.ErrNotFound) {
		t.Errorf("of no room: %v", err)
	}
}

// TestWatch checks that all watchers get the same bytes, and that their watches end when the room
// leaves memory.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.live.watchers.maxOwn = 2
	r := create(t, s.rooms, quick("watched"))
	holder := newHolder()
	one, err := s.live.Watch(t.Context(), "watched", holder)
	two, err2 := s.live.Watch(t.Context(), "watched", holder)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.live.Watch(t.Context(), "watched", holder); !errors.Is(err, ErrStreams) {
		t.Errorf("a third one of the same person: %v", err)
	}
	if _, err := s.live.Watch(t.Context(), "nowhere", newHolder()); !errors.Is(err, room.ErrNotFound) {
		t.Errorf("of no room: %v", err)
	}
	join(t, r, 4)
	figures, past := one.Now()
	var f Figures
	var p Series
	if err := errors.Join(json.Unmarshal(figures, &f), json.Unmarshal(past, &p)); err != nil || f.Arrivals != 4 {
		t.Errorf("now %s, %s, %v", figures, past, err)
	}
	a, b := s.nextOf(t, one, two)
	for range 20 { // the second watcher may start to wait after the first has got its figures
		if bytes.Equal(a, b) {
			break
		}
		a, b = s.nextOf(t, one, two)
	}
	if len(a) == 0 || &a[0] != &b[0] {
		t.Errorf("they were encoded twice: %d and %d bytes", len(a), len(b))
	}
	two.Close()
	two.Close()
	one.track.board.close()
	if _, err := one.Next(t.Context()); !errors.Is(err, ErrOver) {
		t.Errorf("when the room is gone: %v", err)
	}
	one.Close()
	if one.track.board.hasWatchers() || s.live.watchers.all != 0 {
		t.Errorf("%d seats are taken", s.live.watchers.all)
	}
}

// nextOf returns the next figures of two watchers.
func (s *server) nextOf(t *testing.T, one, two *Watch) (a, b []byte) {
	t.Helper()
	got := make(chan []byte, 2)
	for _, w := range []*Watch{one, two} {
		go func() {
			document, _ := w.Next(t.Context())
			got <- document
		}()
	}
	eventually(t, "both get figures", func() bool {
		s.live.sample(t.Context())
		return len(got) == 2
	})
	return <-got, <-got
}

// TestAway takes the database down while rows are waiting: they are kept, up to the limit.
func TestAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.pool.Close()
	row := func(n int) pglive.Minute { return pglive.Minute{At: time.Unix(int64(n)*60, 0)} }
	for n := range maxWaitingRows + 10 {
		s.live.waiting = latest(append(s.live.waiting, row(n)))
	}
	s.live.send(t.Context())
	if len(s.live.waiting) != 0 || len(s.live.sending) != maxWaitingRows {
		t.Fatalf("%d wait, and %d are sent", len(s.live.waiting), len(s.live.sending))
	}
	s.live.waiting = append(s.live.waiting, row(maxWaitingRows+10))
	eventually(t, "they come back", func() bool {
		s.live.send(t.Context())
		return s.live.failing
	})
	kept := s.live.sending // and are sent again
	if len(kept) != maxWaitingRows || !kept[0].At.Equal(row(11).At) ||
		!kept[maxWaitingRows-1].At.Equal(row(maxWaitingRows+10).At) {
		t.Errorf("%d are kept, from %v to %v", len(kept), kept[0].At, kept[len(kept)-1].At)
	}
	if _, err := s.live.History(t.Context(), "any", time.Time{}, time.Time{}, 0); err == nil ||
		errors.Is(err, room.ErrNotFound) {
		t.Errorf("history: %v", err)
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for _, test := range []struct {
		name              string
		created, from, to time.Time
		step              time.Duration
		wantFrom, wantTo  time.Time
		wantStep          time.Duration
		ok                bool
	}{
		{"young", in(-time.Hour), time.Time{}, time.Time{}, 0, now.Truncate(time.Minute).Add(-time.Hour),
			now.Truncate(time.Minute).Add(2 * time.Minute), time.Minute, true},
		{"old", in(-5000 * time.Hour), time.Time{}, time.Time{}, 0,
			now.Truncate(time.Minute).Add(2*time.Minute - Kept), now.Truncate(time.Minute).Add(2 * time.Minute), 44 * time.Minute, true},
		{"asked", in(-time.Hour), in(-4 * time.Hour), in(-time.Hour), 5 * time.Minute, in(-4 * time.Hour),
			in(-time.Hour), 5 * time.Minute, true},
		{"from later on", in(time.Hour), time.Time{}, in(-time.Hour), time.Hour, in(-time.Hour - Kept), in(-time.Hour),
			time.Hour, true},
		{"backwards", now, in(1), now, time.Minute, in(1), now, time.Minute, false},
		{"empty", now, now, now, time.Minute, now, now, time.Minute, false},
		{"half minutes", now, in(-time.Hour), now, 90 * time.Second, in(-time.Hour), now, 90 * time.Second, false},
		{"negative step", now, in(-time.Hour), now, -time.Minute, in(-time.Hour), now, -time.Minute, false},
		{"long step", now, in(-time.Hour), now, 25 * time.Hour, in(-time.Hour), now, 25 * time.Hour, false},
		{"ages", now, in(-100_000 * time.Hour), now, 0, in(-100_000 * time.Hour), now, 0, false},
	} {
		from, to, step, err := spanOf(test.created, now, test.from, test.to, test.step)
		if !from.Equal(test.wantFrom) || !to.Equal(test.wantTo) || step != test.wantStep || (err == nil) != test.ok ||
			err != nil && !errors.Is(err, ErrSpan) {
			t.Errorf("%s: from %v to %v by %v, %v", test.name, from, to, step, err)
		}
	}
}
