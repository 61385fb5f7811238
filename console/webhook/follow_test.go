package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/pgroom"
)

// visitor is a visitor with a secret.
type visitor struct {
	secret [fairness.SecretSize]byte
	ticket fairness.Ticket
}

// join lets n people join a room.
func join(t testing.TB, r *room.Room, n int) (list []visitor) {
	t.Helper()
	for range n {
		var v visitor
		_, _ = rand.Read(v.secret[:])
		v.ticket = fairness.NewTicket(r.Origin, v.secret)
		if _, err := r.Join(t.Context(), v.ticket); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// open creates a room that draws twice a second.
func open(t testing.TB, rooms *room.Rooms, slug string) *room.Room {
	t.Helper()
	r, err := rooms.Create(t.Context(), room.Config{
		Slug: slug, Windows: []room.WindowRule{{Length: room.Duration(500 * time.Millisecond)}},
		Outflow: room.Outflow{PerMinute: 6000}, Beacon: fairness.NoBeacon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claim claims for people once they are called.
func claim(t testing.TB, r *room.Room, people []visitor) {
	t.Helper()
	for _, v := range people {
		eventually(t, "the pass", func() bool { _, err := r.Claim(t.Context(), v.ticket, v.secret); return err == nil })
	}
}

// real makes the service use the real clock, like the rooms.
func real(o *Options) { o.Now = time.Now }

// TestSale checks that each entry of a sale is sent once, with two servers running.
func TestSale(t *testing.T) {
	t.Parallel()
	b := newBench(t, real)
	servertest.Run(t, b.Rooms)
	all, ended := newReceiver(t, nil), newReceiver(t, nil)
	_, secret := b.endpoint(all.URL)
	b.endpoint(ended.URL, RoomEnded)
	run(t, b.Service)
	run(t, b.node(real, func(o *Options) { o.Rooms = b.Rooms }))
	r := open(t, b.Rooms, "sale")
	people := join(t, r, 30)
	claim(t, r, people[:20])
	eventually(t, "all are drawn", func() bool {
		return !slices.ContainsFunc(people, func(v visitor) bool {
			st, ok := r.Standing(v.ticket)
			return !ok || st.Status == fairness.StatusWaiting
		})
	})
	ctx := t.Context()
	rate := uint32(1200)
	message := room.MessageChange{Message: room.Message{Texts: map[string]string{"en": "Please wait."}}}
	for _, err := range []error{
		r.FreezeClaims(ctx), r.Resume(ctx), r.Amend(ctx, room.Amendment{Outflow: &room.OutflowChange{PerMinute: &rate},
			Message: &message}),
		r.Revoke(ctx, people[25].ticket, fairness.Revoked), r.End(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the end is sent", func() bool { return len(all.of(RoomEnded)) > 0 && len(ended.requests()) > 0 })
	eventually(t, "everything is delivered", func() bool {
		p, err := b.Deliveries.List(ctx, operator, DeliveryFilter{State: Waiting})
		return err == nil && len(p.Deliveries) == 0
	})
	for _, req := range all.requests() {
		if err := verify(t, secret, req); err != nil {
			t.Errorf("%s: %v", req.Type, err)
		}
		if req.Data["room"] != "sale" || req.Data["url"] != "https://example.com/r/sale" {
			t.Errorf("%s is of %v, %v", req.Type, req.Data["room"], req.Data["url"])
		}
	}
	if got := all.of(RoomPaused); len(got) != 1 || got[0].Data["claims_frozen"] != true {
		t.Errorf("room.paused with frozen claims: %+v", got)
	}
	for kind, want := range map[EventKind]int{RoomOpened: 1, RoomPaused: 1, RoomResumed: 1, Revoked: 1, RoomEnded: 1,
		BeaconLate: 0, ForkSeen: 0, TestPing: 0} {
		if got := all.of(kind); len(got) != want {
			t.Errorf("%d of %s, want %d", len(got), kind, want)
		}
	}
	if n := len(ended.requests()); n != 1 {
		t.Errorf("%d deliveries to the one that listens to the end alone", n)
	}
	checkSent(t, all, people)
}

// checkSent checks that every admission, call, draw and change was sent once.
func checkSent(t *testing.T, r *receiver, people []visitor) {
	t.Helper()
	var tickets []string
	for _, req := range r.of(Admitted) {
		list, _ := req.Data["tickets"].([]any)
		if fmt.Sprint(len(list)) != fmt.Sprint(req.Data["people"]) {
			t.Errorf("admitted: %v people, %d tickets", req.Data["people"], len(list))
		}
		for _, one := range list {
			m, _ := one.(map[string]any)
			tickets = append(tickets, fmt.Sprint(m["ticket"]))
		}
	}
	var want []string
	for _, v := range people[:20] {
		want = append(want, v.ticket.String())
	}
	slices.Sort(tickets)
	slices.Sort(want)
	if diff := cmp.Diff(want, tickets); diff != "" {
		t.Errorf("admitted (-want +got)\n%s", diff)
	}
	calledPeople, upTo := 0.0, 0.0
	for _, req := range r.of(RoomCalled) {
		calledPeople += req.Data["people"].(float64)
		upTo = max(upTo, req.Data["up_to"].(float64))
	}
	if calledPeople != upTo || upTo < 20 {
		t.Errorf("called %v people up to %v", calledPeople, upTo)
	}
	drawnPeople := 0.0
	for _, req := range r.of(WindowDrawn) {
		for _, w := range req.Data["windows"].([]any) {
			drawnPeople += w.(map[string]any)["people"].(float64)
		}
	}
	if drawnPeople != float64(len(people)) {
		t.Errorf("%v people drawn", drawnPeople)
	}
	var changes []string
	for _, req := range r.of(RoomAmended) {
		for _, c := range req.Data["changes"].([]any) {
			changes = append(changes, fmt.Sprint(c.(map[string]any)["change"]))
		}
	}
	if slices.Sort(changes); fmt.Sprint(changes) != "[message outflow]" {
		t.Errorf("changes %v", changes)
	}
}

// TestRehearsal checks that events of rehearsals are marked.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	b := newBench(t, real)
	servertest.Run(t, b.Rooms)
	in := newReceiver(t, nil)
	e, _ := b.endpoint(in.URL, RoomPaused)
	if err := b.Alerts.SetSettings(t.Context(), operator, AlertSettings{Endpoints: []uuid.UUID{e.ID},
		Kinds: AlertKinds()}); err != nil {
		t.Fatal(err)
	}
	run(t, b.Service)
	played, owner := uuid.New(), pgroom.Owner{Org: operator.Org}
	for i, slug := range []string{"real", "played"} {
		if i == 1 {
			owner.RehearsalOf = &played
		}
		r, err := b.Rooms.CreateFor(t.Context(), owner, room.Config{Slug: slug, Beacon: fairness.NoBeacon})
		if err == nil {
			err = r.Pause(t.Context())
		}
		if err == nil {
			err = b.Alerts.Send(t.Context(), operator.Org, AlertLineFull, slug, "Full.")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are sent", func() bool { return len(in.of(RoomPaused)) == 2 && len(in.of(alertEvent)) == 4 })
	for _, req := range in.requests() {
		if played := req.Data["rehearsal"] == true; played != (req.Data["room"] == "played") {
			t.Errorf("%s of %v: rehearsal %v", req.Type, req.Data["room"], req.Data["rehearsal"])
		}
	}
	if _, text := letter(&alerted{Room: "a", IsRehearsal: true}, ""); !strings.Contains(text, "rehearsal") {
		t.Errorf("letter %q", text)
	}
}

// TestNobodyListens checks that a room without listeners has no cursor, and that earlier events are
// not sent.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	b := newBench(t, real)
	servertest.Run(t, b.Rooms)
	r := open(t, b.Rooms, "quiet")
	claim(t, r, join(t, r, 3))
	if err := b.follower.followAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.rows("transcript_cursors"); n != 0 {
		t.Errorf("%d cursors", n)
	}
	in := newReceiver(t, nil)
	e, _ := b.endpoint(in.URL)
	run(t, b.Service)
	eventually(t, "the room is followed", func() bool { return b.rows("transcript_cursors") == 1 })
	claim(t, r, join(t, r, 2))
	eventually(t, "the two are sent", func() bool {
		n := 0
		for _, req := range in.of(Admitted) {
			n += int(req.Data["people"].(float64))
		}
		return n >= 2
	})
	if n := len(in.of(RoomOpened)); n != 0 {
		t.Errorf("the opening was sent %d times", n)
	}
	for _, req := range in.of(RoomCalled) {
		if req.Data["people"].(float64) > 2 {
			t.Errorf("called %v people", req.Data["people"])
		}
	}
	if n := len(in.of(Admitted)); n < 1 || n > 2 {
		t.Errorf("%d events of admissions", n)
	}
	no, yes := false, true
	if _, err := b.Endpoints.Update(t.Context(), operator, e.ID, EndpointChange{Enabled: &no}); err != nil {
		t.Fatal(err)
	}
	before := len(in.requests())
	claim(t, r, join(t, r, 1))
	time.Sleep(followInterval / 2)
	if _, err := b.Endpoints.Update(t.Context(), operator, e.ID, EndpointChange{Enabled: &yes}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room is followed again", func() bool { return b.rows("transcript_cursors") == 1 })
	if err := r.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pause is sent", func() bool { return len(in.of(RoomPaused)) == 1 })
	for _, req := range in.requests()[before:] {
		if req.Type == Admitted {
			t.Error("an admission while it was disabled is sent")
		}
	}
}

// TestRestart checks that events from a time without servers are sent once by the next server, in
// parts of 500 tickets.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, real)
	servertest.Run(t, b.Rooms)
	in := newReceiver(t, nil)
	b.endpoint(in.URL, Admitted, RoomEnded)
	r := open(t, b.Rooms, "burst")
	rate := uint32(1_000_000)
	if err := r.Amend(t.Context(), room.Amendment{Outflow: &room.OutflowChange{PerMinute: &rate}}); err != nil {
		t.Fatal(err)
	}
	const n = 1100
	people := crowd(t, r, n)
	eventually(t, "all are in", func() bool { return r.Snapshot().Counts.Admitted == n })
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is marked", func() bool {
		list, err := b.Rooms.List(t.Context())
		return err == nil && list[0].Ended != nil
	})
	for range 4 { // each acts as a newly started server
		if err := b.node(real, func(o *Options) { o.Rooms = b.Rooms }).follower.followAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		pass(t, b.Service)
	}
	seen, parts := map[string]int{}, 0
	for _, req := range in.of(Admitted) {
		list := req.Data["tickets"].([]any)
		if len(list) > partSize {
			t.Errorf("%d tickets in one delivery", len(list))
		}
		parts++
		for _, one := range list {
			seen[one.(map[string]any)["ticket"].(string)]++
		}
	}
	for _, v := range people {
		if seen[v.ticket.String()] != 1 {
			t.Fatalf("a ticket was sent %d times", seen[v.ticket.String()])
		}
	}
	if len(seen) != n || parts > 5 || len(in.of(RoomEnded)) != 1 {
		t.Errorf("%d tickets in %d deliveries, %d ends", len(seen), parts, len(in.of(RoomEnded)))
	}
	var done bool
	if err := b.pool.QueryRow(t.Context(), `select done from transcript_cursors`).Scan(&done); err != nil || !done {
		t.Errorf("done %t, %v", done, err)
	}
}

// TestOneConnection checks that maxFollowed hold no connection while they wait for another, so that
// they need only one.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, real)
	servertest.Run(t, b.Rooms)
	in := newReceiver(t, nil)
	b.endpoint(in.URL, RoomOpened)
	for i := range 2 * maxFollowed {
		open(t, b.Rooms, fmt.Sprintf("room-%d", i))
	}
	pool := connect(t, b.url, func(c *pgxpool.Config) { c.MaxConns = 1 })
	h := New(Options{
		Store: pgwebhook.NewStore(pool), Rooms: room.New(room.Options{Logs: pglog.NewStore(pool),
			PublicURL: "https://example.com"}),
		Sealer: b.key, Log: b.log, Allowed: loopback,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 2 { // the first stores the cursors
		if err := h.follower.followAll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		pass(t, h)
	}
	if n := len(in.of(RoomOpened)); n != 2*maxFollowed {
		t.Errorf("%d openings sent", n)
	}
}

// crowd has n visitors join and claim at once.
func crowd(t testing.TB, r *room.Room, n int) []visitor {
	t.Helper()
	people := make([]visitor, n)
	failed := make(chan error, n)
	for i := range people {
		v := &people[i]
		_, _ = rand.Read(v.secret[:])
		v.ticket = fairness.NewTicket(r.Origin, v.secret)
		go func() {
			_, err := r.Join(t.Context(), v.ticket)
			for end := time.Now().Add(time.Minute); err == nil &&
				time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if _, err := r.Claim(t.Context(), v.ticket, v.secret); err == nil {
					break
				}
			}
			failed <- err
		}()
	}
	for range people {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	return people
}

// awayBeacon is a beacon whose rounds cannot be fetched.
type awayBeacon struct{ asked atomic.Int32 }

func (b *awayBeacon) Wait(ctx context.Context, _ uint64) ([]byte, error) {
	b.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestBeaconLate checks that a late round causes one event and one alert.
func TestBeaconLate(t *testing.T) {
	t.Parallel()
	chain, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: time.Now().Unix() - 1000, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, real)
	b.Rooms.Chains = []evidence.Chain{{Chain: chain.Chain(), Rounds: &awayBeacon{}}}
	servertest.Run(t, b.Rooms)
	in := newReceiver(t, nil)
	e, _ := b.endpoint(in.URL, BeaconLate)
	if err := b.Alerts.SetSettings(t.Context(), operator, AlertSettings{Endpoints: []uuid.UUID{e.ID},
		Kinds: []AlertKind{AlertBeaconLate}}); err != nil {
		t.Fatal(err)
	}
	margin := room.Duration(5 * time.Second)
	r, err := b.Rooms.Create(t.Context(), room.Config{Slug: "dark",
		Windows: []room.WindowRule{{Length: room.Duration(500 * time.Millisecond)}}, Margin: &margin})
	if err != nil {
		t.Fatal(err)
	}
	join(t, r, 2)
	eventually(t, "a draw waits", func() bool { return len(r.Evidence.Awaited()) > 0 })
	due := r.Evidence.Awaited()[0].Due
	l, err := b.listeners.readAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{due.Add(maxBeaconDelay), due.Add(maxBeaconDelay + time.Second),
		due.Add(maxBeaconDelay + time.Hour)} {
		rooms, err := b.Store.Cursors.Rooms(t.Context(), l.list())
		if err != nil || len(rooms) != 1 {
			t.Fatal(rooms, err)
		}
		f := &followPass{follower: b.follower, listening: l, at: now, loaded: map[uuid.UUID]*room.Room{r.ID: r}}
		for range 2 { // the first stores the cursor
			if rooms, err = b.Store.Cursors.Rooms(t.Context(), l.list()); err == nil {
				err = f.follow(t.Context(), rooms[0], r.Snapshot().Size)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.pool.Exec(t.Context(), `update transcript_cursors set looked_at = looked_at - interval '1 minute'`); err != nil {
				t.Fatal(err)
			}
		}
		pass(t, b.Service)
		want := 1
		if now.Equal(due.Add(maxBeaconDelay)) {
			want = 0
		}
		if got, alerts := in.of(BeaconLate), in.of(alertEvent); len(got) != want || len(alerts) != want {
			t.Fatalf("%v after it was due: sent %d times, alerted %d times", now.Sub(due), len(got), len(alerts))
		}
	}
	if got := in.of(alertEvent)[0].Data; got["kind"] != "beacon_late" || got["room"] != "dark" ||
		!strings.Contains(got["text"].(string), "waited for round") {
		t.Errorf("alert %v", got)
	}
}

// TestNews checks that events from outside the transcript are sent once per occurrence.
func TestNews(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000).UTC()
	s := &state{Opens: now.UnixMilli() + 1}
	sent := func(n outsideNews) string {
		g := &gathering{state: s, where: where{Room: "a", URL: "https://example.com/r/a"}}
		n.now = now
		was := n.any(s)
		var kinds []string
		for _, e := range n.events(g) {
			kinds = append(kinds, string(e.kind))
		}
		if was != (len(kinds) > 0) {
			t.Errorf("any: %t, but sent %v", was, kinds)
		}
		return strings.Join(kinds, " ")
	}
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: sent %q, want %q", what, got, want)
		}
	}
	step("before it opens", sent(outsideNews{}), "")
	now = now.Add(time.Millisecond)
	step("it opens", sent(outsideNews{}), "room.opened")
	step("open", sent(outsideNews{}), "")
	late := &evidence.Awaited{Window: 3, Round: 7, Due: now}
	step("late", sent(outsideNews{late: late}), "room.beacon_late")
	step("still late", sent(outsideNews{late: late}), "")
	g := &gathering{state: s}
	g.draw(9, &fairness.Draw{Window: 3})
	step("late again", sent(outsideNews{late: &evidence.Awaited{Window: 4, Round: 8, Due: now}}), "room.beacon_late")
	seen := []evidence.Fork{{Witness: "w.example.org", Latest: now, Detail: "x"}}
	step("fork", sent(outsideNews{forks: seen}), "room.fork_seen")
	s.Forks = map[string]time.Time{"w.example.org": now.Add(-forkInterval - 1)}
	step("fork, an hour later", sent(outsideNews{forks: seen}), "room.fork_seen")
}

// examples returns entries in the form of a transcript.
func examples(t testing.TB) []pglog.Entry {
	t.Helper()
	seed, ticket := [32]byte{1, 2, 3}, fairness.NewTicket("example.com/r/sale", [32]byte{1})
	pass := fairness.NewPassID("example.com/r/sale", ticket)
	var list []pglog.Entry
	const start = fairness.Time(1_767_261_600_000)
	for i, e := range []fairness.Entry{
		&fairness.Freeze{Time: start, Window: 4, Lots: []uint32{120}},
		&fairness.Draw{Time: start + 3_400, Window: 4, Seed: seed, Cosignatures: make([]fairness.Cosignature, 2)},
		&fairness.Call{Time: start + 4_000, UpTo: []fairness.Position{40}},
		&fairness.Call{Time: start + 4_250, UpTo: []fairness.Position{52}},
		&fairness.Admit{Time: start + 5_000, Ticket: ticket, Pass: pass},
		&fairness.Skip{Time: start + 6_000, Ticket: ticket, Reason: fairness.RevokedBot},
		&fairness.Skip{Time: start + 6_000, Ticket: ticket, Reason: fairness.NoShow},
		&fairness.Amend{Time: start + 7_000, Change: fairness.ChangePause},
		&fairness.Amend{Time: start + 8_000, Change: fairness.ChangeResume},
		&fairness.Amend{Time: start + 9_000, Change: fairness.ChangeOutflow,
			Outflow: fairness.Outflow{PerMinute: 600, MaxActive: 2000}},
		&fairness.Amend{Time: start + 9_000, Change: fairness.ChangeMessage, Message: seed},
		&fairness.Amend{Time: start + 9_000, Change: fairness.ChangeWindows, Closes: start + 3_600_000,
			Windows: []fairness.WindowRule{{From: start + 60_000, Length: 60_000}}},
		&fairness.Amend{Time: start + 9_200, Change: fairness.ChangeOpen},
		&fairness.Amend{Time: start + 9_400, Change: fairness.ChangeShut},
		&fairness.Tell{Time: start + 9_600, Subject: fairness.TellUnguarded, From: start - 120_000,
			Until: start - 60_000, Count: 42},
		&fairness.End{Time: start + 10_000},
	} {
		list = append(list, pglog.Entry{Index: uint64(300 + i), Text: string(fairness.AppendEntry(nil, e))})
	}
	return list
}

// payloads returns example events by kind.
func payloads(t testing.TB) map[EventKind]string {
	t.Helper()
	g := &gathering{state: &state{Called: 30, Opens: 1_767_261_600_000},
		where: where{Room: "sale", URL: "https://example.com/r/sale"}}
	for _, entry := range examples(t) {
		if err := g.take(entry); err != nil {
			t.Fatal(err)
		}
	}
	at := time.UnixMilli(1_767_261_660_000).UTC()
	n := outsideNews{now: at, late: &evidence.Awaited{Window: 5, Round: 4_242, Due: at.Add(-31 * time.Second)},
		forks: []evidence.Fork{{Witness: "witness.example.org", Latest: at,
			Detail: "ask witness witness.example.org: not consistent"}}}
	events := append(g.events(), event{TestPing, at, ping{"A test from Proofline, requested by you@example.com."}},
		event{alertEvent, at, alerted{AlertLineFull, AlertLineFull.Title(), "sale", "https://example.com/r/sale",
			false, "The line is full: 50,000 people wait."}})
	g.Ended = false
	events = append(events, n.events(g)...)
	texts := map[EventKind]string{}
	for _, e := range events {
		text, err := e.text()
		if err != nil {
			t.Fatal(err)
		}
		texts[e.kind] = text
	}
	return texts
}

// TestGatherBad checks that unknown entries cause an error and nothing else.
func TestGatherBad(t *testing.T) {
	t.Parallel()
	g := &gathering{state: &state{}}
	for _, text := range []string{"", "call", "teleport 1", "end -1"} {
		if err := g.take(pglog.Entry{Text: text}); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if len(g.events()) != 0 {
		t.Errorf("events %+v", g.events())
	}
}

// FuzzGather checks that no entry causes a panic or invalid JSON.
func FuzzGather(f *testing.F) {
	for _, entry := range examples(f) {
		f.Add(entry.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := &gathering{state: &state{}}
		_ = g.take(pglog.Entry{Text: text})
		for _, e := range g.events() {
			if body, err := e.text(); err != nil || !json.Valid([]byte(body)) {
				t.Errorf("%q: %s, %v", text, body, err)
			}
		}
		if _, err := json.Marshal(g.state); err != nil {
			t.Error(err)
		}
	})
}
