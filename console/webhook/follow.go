package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
)

const (
	// maxScan is the maximum number of entries processed per transaction.
	maxScan = 1_000
	// maxFollowed is the number of rooms followed concurrently.
	maxFollowed = 4
	// followTimeout limits one pass over all rooms.
	followTimeout = time.Minute
	// maxBeaconDelay is how long a draw may wait for its round before room.beacon_late is sent.
	maxBeaconDelay = 30 * time.Second
	// forkInterval is the interval at which room.fork_seen is repeated for one witness.
	forkInterval = time.Hour
	// claimLag tolerates that another node checked a room a little less than one interval ago.
	claimLag = 100 * time.Millisecond
)

// follower turns the entries of rooms into deliveries.
type follower struct {
	store     *pgwebhook.Cursors
	rooms     *room.Rooms
	listeners *listeners
	outbox    *outbox
	alerts    *Alerts
	outage    *outageWatch
	now       func() time.Time
	log       *slog.Logger
}

// followPass is one pass over the rooms.
type followPass struct {
	*follower
	listening *listening
	at        time.Time // time by the database's clock
	loaded    map[uuid.UUID]*room.Room
}

// followAll follows all rooms that have listeners. Without listeners it costs one query of an empty
// table.
func (f *follower) followAll(ctx context.Context) error {
	l, err := f.listeners.readAll(ctx)
	f.outage.note(ctx, err)
	if err != nil || len(l.byOrg) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	rooms, err := f.store.Rooms(ctx, l.list())
	if err != nil || len(rooms) == 0 {
		return err
	}
	ids := make([]uuid.UUID, len(rooms))
	for i, r := range rooms {
		ids[i] = r.ID
	}
	p := &followPass{follower: f, listening: l, loaded: map[uuid.UUID]*room.Room{}}
	heads, at, err := f.rooms.Logs.Heads(ctx, ids)
	if err != nil {
		return err
	}
	p.at = at
	for _, r := range f.rooms.Loaded() {
		p.loaded[r.ID] = r
	}
	sizes := make(map[uuid.UUID]uint64, len(heads))
	for _, head := range heads {
		sizes[head.Room] = head.Size
	}
	var group errgroup.Group
	group.SetLimit(maxFollowed)
	for _, r := range rooms {
		if sizes[r.ID] > 0 { // otherwise nothing has been published yet
			group.Go(func() error { return p.follow(ctx, r, sizes[r.ID]) })
		}
	}
	return group.Wait()
}

// follow processes a room's entries up to the end of its transcript.
func (p *followPass) follow(ctx context.Context, r pgwebhook.Room, size uint64) error {
	o := p.listening.byOrg[r.Org]
	if r.Next == nil {
		return p.begin(ctx, r, o)
	}
	var s state
	if err := json.Unmarshal(r.State, &s); err != nil {
		return fmt.Errorf("follow room %s: %w", r.Slug, err)
	}
	news := p.news(r, &s)
	if size <= uint64(*r.Next) && !news.any(&s) { //nolint:gosec // never negative
		return nil
	}
	latest := p.now().Add(-followInterval + claimLag)
	for more := true; more && ctx.Err() == nil; latest = p.now().Add(followInterval) {
		was, ok, err := p.store.Claim(ctx, r.ID, p.now(), latest)
		if err != nil || !ok {
			return err
		}
		c := was
		out, err := p.move(ctx, r, o, news, &c)
		if err == nil {
			err = p.store.Advance(ctx, r.ID, was, c, out)
		}
		if err != nil {
			return fmt.Errorf("follow room %s: %w", r.Slug, err)
		}
		more = c.Next < size && !c.Done
	}
	p.outbox.signal()
	return nil
}

// begin stores the first cursor of a room: at the start of the transcript if the organization
// listened when the room was created, otherwise at its end.
func (p *followPass) begin(ctx context.Context, r pgwebhook.Room, o *listener) error {
	var s state
	var next uint64
	if r.Created.Before(o.since()) {
		live, err := p.rooms.Get(ctx, r.Slug)
		if err != nil {
			return fmt.Errorf("begin to follow room %s: %w", r.Slug, err)
		}
		next, s = stateOf(live.Snapshot(), p.at)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return p.store.Begin(ctx, r, pgwebhook.Cursor{Next: next, State: text, Done: s.Ended}, p.now())
}

// stateOf returns the state that following a room up to its snapshot would have produced.
func stateOf(s *room.Snapshot, now time.Time) (next uint64, _ state) {
	people := map[fairness.WindowIndex]uint32{}
	for _, w := range s.Windows {
		if w.Frozen && !w.Drawn && !s.HasGaps() {
			people[w.Index] = w.Arrivals
		}
	}
	return s.Size, state{
		Opens: s.Opens.UnixMilli(), Opened: !now.Before(s.Opens), Gaps: s.HasGaps(),
		Called: fairness.Position(s.Counts.Called),
		People: people, Ended: s.Ended,
	}
}

// outsideNews holds changes of a room that are not in its transcript.
type outsideNews struct {
	now   time.Time
	late  *evidence.Awaited
	forks []evidence.Fork
}

// news returns what this node knows about a room beyond its transcript.
func (p *followPass) news(r pgwebhook.Room, s *state) outsideNews {
	n := outsideNews{now: p.at}
	live, ok := p.loaded[r.ID]
	if !ok {
		return n
	}
	awaited := live.Evidence.Awaited() // later draws wait for the first
	if len(awaited) > 0 && !awaited[0].HasRound && p.at.Sub(awaited[0].Due) > maxBeaconDelay {
		n.late = &awaited[0]
	}
	for _, seen := range live.Evidence.Forks() {
		if seen.Latest.Sub(s.Forks[seen.Witness]) > forkInterval {
			n.forks = append(n.forks, seen)
		}
	}
	return n
}

// any reports whether there is anything to send.
func (n *outsideNews) any(s *state) bool {
	return n.opens(s) || n.late != nil && s.Late == nil || len(n.forks) > 0
}

// opens reports whether the room has opened since the last pass.
func (n *outsideNews) opens(s *state) bool {
	return !s.Opened && s.Opens > 0 && n.now.UnixMilli() >= s.Opens
}

// move processes the next entries of a room and its news.
func (p *followPass) move(ctx context.Context, r pgwebhook.Room, o *listener, n outsideNews,
	c *pgwebhook.Cursor) (out pgwebhook.Outgoing, err error) {
	var s state
	if err := json.Unmarshal(c.State, &s); err != nil {
		return out, err
	}
	entries, next, err := p.rooms.Logs.Scan(ctx, r.ID, c.Next, maxScan, string(fairness.KindArrive),
		string(fairness.KindAssign))
	if err != nil {
		return out, err
	}
	w := where{r.Slug, p.rooms.PublicURL + "/r/" + r.Slug, r.IsRehearsal}
	if live, ok := p.loaded[r.ID]; ok {
		w.URL = live.URL
	}
	g := &gathering{state: &s, where: w}
	for _, entry := range entries {
		if err := g.take(entry); err != nil {
			p.log.Error("cannot parse entry for webhooks", "room", r.Slug, "entry", entry.Index, "err", err)
		}
	}
	events := append(n.events(g), g.events()...)
	c.Next, c.Done = next, s.Ended
	if c.State, err = json.Marshal(s); err != nil {
		return out, err
	}
	return p.outgoing(r, o, w, events)
}

// events returns the news as events, and marks them as sent.
func (n *outsideNews) events(g *gathering) (list []event) {
	if at := time.UnixMilli(g.Opens).UTC(); n.opens(g.state) && !g.endedBefore(at) {
		g.Opened = true
		list = append(list, event{RoomOpened, at, opened{g.where, at}})
	}
	if n.late != nil && g.Late == nil && !g.Ended && !g.wasDrawn(n.late.Window) {
		g.Late = &n.late.Window
		list = append(list, event{BeaconLate, n.now.UTC(),
			late{g.where, n.late.Window, n.late.Round, n.late.Due.UTC()}})
	}
	for _, seen := range n.forks {
		if seen.Latest.Sub(g.Forks[seen.Witness]) <= forkInterval {
			continue // another node has sent it
		}
		if g.Forks == nil {
			g.Forks = map[string]time.Time{}
		}
		g.Forks[seen.Witness] = seen.Latest
		list = append(list, event{ForkSeen, seen.Latest.UTC(), fork{g.where, seen.Witness, seen.Detail}})
	}
	return list
}

// endedBefore reports whether the gathered entries end the room before t.
func (g *gathering) endedBefore(t time.Time) bool {
	end, ok := g.moments[RoomEnded]
	return ok && end.At.Before(t)
}

// wasDrawn reports whether the gathered entries draw a window.
func (g *gathering) wasDrawn(w fairness.WindowIndex) bool {
	return len(g.windows) > 0 && g.windows[len(g.windows)-1].Window >= w
}

// outgoing returns the deliveries and alerts for the events of a room.
func (p *followPass) outgoing(r pgwebhook.Room, o *listener, w where,
	events []event) (out pgwebhook.Outgoing, err error) {
	for i := range events {
		e := &events[i]
		list, err := p.outbox.deliveriesFor(o, r.Slug, e)
		if err != nil {
			return out, err
		}
		out.Deliveries = append(out.Deliveries, list...)
		kind, text := alertOf(e)
		if kind == "" || e.at.Before(o.alerts.Since) {
			continue
		}
		alert, err := p.alerts.build(o, kind, w, text)
		if err != nil {
			return out, err
		}
		if len(alert.Deliveries) > 0 {
			out.Alerts = append(out.Alerts, alert)
		}
	}
	return out, nil
}

// alertOf returns the alert for an event; "" if there is none.
func alertOf(e *event) (AlertKind, string) {
	switch data := e.data.(type) {
	case late:
		return AlertBeaconLate, fmt.Sprintf("The draw of window %d has waited for round %d of the beacon since %s. "+
			"No visitor loses a place, and the draw takes place as soon as the round arrives. "+
			"Check that the server can reach the beacon's relays.",
			data.Window, data.Round, Moment(data.Due))
	case fork:
		return AlertForkSeen, fmt.Sprintf("%s has seen a different history of this room from the one in the database: %s. "+
			"The servers hold the room: until it is recovered, no visitor can join, is called or is admitted. "+
			"Possible causes are a restored backup, a failover to a standby that lagged behind, or two servers that run "+
			"this room on different databases. Run proofline recover on a server's machine: it shows what is missing "+
			"and how to continue.", data.Witness, data.Detail)
	case paused:
		if data.ClaimsFrozen {
			return AlertPaused, "Calls and claims have been stopped since " + Moment(data.At) +
				". Visitors can still join. " +
				"Until the room is resumed, no visitor is called and called visitors cannot claim. Claim times are suspended."
		}
		return AlertPaused, "Calls have been paused since " + Moment(data.At) +
			". Visitors can still join, and called " +
			"visitors can claim. No visitor is called until the room is resumed."
	case moment:
		if e.kind == RoomEnded {
			return AlertEnded, "The room ended at " + Moment(data.At) + ". No more visitors can join or are called."
		}
	}
	return "", ""
}

// Moment formats a moment as the console does: 22 Nov 2026, 18:00 UTC, with seconds unless they are
// 0.
func Moment(t time.Time) string {
	if t.Second() == 0 {
		return t.UTC().Format("2 Jan 2006, 15:04 UTC")
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}
