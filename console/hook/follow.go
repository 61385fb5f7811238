package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/console/hook/pghook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

const (
	// scanMost is how many entries one transaction takes on.
	scanMost = 1_000
	// followers is how many rooms are followed at once.
	followers = 4
	// followTimeout bounds one look at all rooms.
	followTimeout = time.Minute
	// beaconPatience is how long after its round was due a draw waits before
	// that is told.
	beaconPatience = 30 * time.Second
	// forkQuiet is for how long the same witness is not told of again.
	forkQuiet = time.Hour
	// lookedLag is how much earlier than a second ago another node may have
	// looked at a room.
	lookedLag = 100 * time.Millisecond
)

// follower follows the rooms once.
type follower struct {
	*Hooks
	listening *listening
	now       time.Time // by the database's clock
	loaded    map[uuid.UUID]*room.Room
}

// followAll follows every room that somebody listens to. With nobody it costs
// one look at an empty table.
func (h *Hooks) followAll(ctx context.Context) error {
	l, err := h.readListening(ctx)
	h.noteDatabase(ctx, err)
	if err != nil || len(l.byOrg) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	rooms, err := h.Store.Rooms(ctx, l.list())
	if err != nil || len(rooms) == 0 {
		return err
	}
	ids := make([]uuid.UUID, len(rooms))
	for i, r := range rooms {
		ids[i] = r.ID
	}
	f := &follower{Hooks: h, listening: l, loaded: map[uuid.UUID]*room.Room{}}
	heads, now, err := h.Rooms.Logs.Heads(ctx, ids)
	if err != nil {
		return err
	}
	f.now = now
	for _, r := range h.Rooms.Loaded() {
		f.loaded[r.ID] = r
	}
	sizes := make(map[uuid.UUID]uint64, len(heads))
	for _, head := range heads {
		sizes[head.Room] = head.Size
	}
	var group errgroup.Group
	group.SetLimit(followers)
	for _, r := range rooms {
		if sizes[r.ID] > 0 { // it is published
			group.Go(func() error { return f.follow(ctx, r, sizes[r.ID]) })
		}
	}
	return group.Wait()
}

// follow follows one room to the end of its transcript.
func (f *follower) follow(ctx context.Context, r pghook.Room, size uint64) error {
	o := f.listening.byOrg[r.Org]
	if r.Next == nil {
		return f.begin(ctx, r, o)
	}
	var s state
	if err := json.Unmarshal(r.State, &s); err != nil {
		return fmt.Errorf("follow room %s: %w", r.Slug, err)
	}
	news := f.news(r, &s)
	if size <= uint64(*r.Next) && !news.any(&s) { //nolint:gosec // never negative
		return nil
	}
	latest := f.Now().Add(-followEvery + lookedLag)
	for more := true; more && ctx.Err() == nil; latest = f.Now().Add(followEvery) {
		was, ok, err := f.Store.Claim(ctx, r.ID, f.Now(), latest)
		if err != nil || !ok {
			return err
		}
		c := was
		out, err := f.move(ctx, r, o, news, &c)
		if err == nil {
			err = f.Store.Advance(ctx, r.ID, was, c, out)
		}
		if err != nil {
			return fmt.Errorf("follow room %s: %w", r.Slug, err)
		}
		more = c.Next < size && !c.Done
	}
	f.signal()
	return nil
}

// begin stores the first cursor of a room: at its beginning, if somebody
// listened by then, else where it is now.
func (f *follower) begin(ctx context.Context, r pghook.Room, o *listener) error {
	var s state
	var next uint64
	if r.Created.Before(o.since()) {
		live, err := f.Rooms.Get(ctx, r.Slug)
		if err != nil {
			return fmt.Errorf("begin to follow room %s: %w", r.Slug, err)
		}
		next, s = stateOf(live.Snapshot(), f.now)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return f.Store.Begin(ctx, r, pghook.Cursor{Next: next, State: text, Done: s.Ended}, f.Now())
}

// stateOf returns what following a room up to its snapshot would have left.
func stateOf(s *room.Snapshot, now time.Time) (next uint64, _ state) {
	people := map[fairness.WindowIndex]uint32{}
	for _, w := range s.Windows {
		if w.Frozen && !w.Drawn {
			people[w.Index] = w.Arrivals
		}
	}
	return s.Size, state{
		Opens: s.Opens.UnixMilli(), Opened: !now.Before(s.Opens), Called: fairness.Position(s.Counts.Called), People: people, Ended: s.Ended,
	}
}

// news is what the transcript does not tell.
type news struct {
	now   time.Time
	late  *room.Awaited
	forks []room.Fork
}

// news returns what this node knows of a room beside its transcript.
func (f *follower) news(r pghook.Room, s *state) news {
	n := news{now: f.now}
	live, ok := f.loaded[r.ID]
	if !ok {
		return n
	}
	awaited := live.Awaited() // the others wait for the first
	if len(awaited) > 0 && !awaited[0].HasRound && f.now.Sub(awaited[0].Due) > beaconPatience {
		n.late = &awaited[0]
	}
	for _, seen := range live.Forks() {
		if seen.Latest.Sub(s.Forks[seen.Witness]) > forkQuiet {
			n.forks = append(n.forks, seen)
		}
	}
	return n
}

// any tells whether there is something to tell.
func (n *news) any(s *state) bool {
	return n.opens(s) || n.late != nil && s.Late == nil || len(n.forks) > 0
}

// opens tells whether the room has opened, which was not told.
func (n *news) opens(s *state) bool {
	return !s.Opened && s.Opens > 0 && n.now.UnixMilli() >= s.Opens
}

// move takes on the next entries of a room, and what else is new.
func (f *follower) move(ctx context.Context, r pghook.Room, o *listener, n news, c *pghook.Cursor) (out pghook.Outgoing, err error) {
	var s state
	if err := json.Unmarshal(c.State, &s); err != nil {
		return out, err
	}
	entries, next, err := f.Rooms.Logs.Scan(ctx, r.ID, c.Next, scanMost, string(fairness.KindArrive), string(fairness.KindAssign))
	if err != nil {
		return out, err
	}
	w := where{r.Slug, f.Rooms.PublicURL + "/r/" + r.Slug, r.IsRehearsal}
	if live, ok := f.loaded[r.ID]; ok {
		w.URL = live.URL
	}
	g := &gathering{state: &s, where: w}
	for _, entry := range entries {
		if err := g.take(entry); err != nil {
			f.Log.Error("entry is left out of webhooks", "room", r.Slug, "entry", entry.Index, "err", err)
		}
	}
	events := append(n.events(g), g.events()...)
	c.Next, c.Done = next, s.Ended
	if c.State, err = json.Marshal(s); err != nil {
		return out, err
	}
	return f.outgoing(r, o, w, events)
}

// events returns the news as events, and notes that they were told.
func (n *news) events(g *gathering) (list []event) {
	if at := time.UnixMilli(g.Opens).UTC(); n.opens(g.state) && !g.endedBefore(at) {
		g.Opened = true
		list = append(list, event{RoomOpened, at, opened{g.where, at}})
	}
	if n.late != nil && g.Late == nil && !g.Ended && !g.wasDrawn(n.late.Window) {
		g.Late = &n.late.Window
		list = append(list, event{BeaconLate, n.now.UTC(), late{g.where, n.late.Window, n.late.Round, n.late.Due.UTC()}})
	}
	for _, seen := range n.forks {
		if seen.Latest.Sub(g.Forks[seen.Witness]) <= forkQuiet {
			continue // another node told
		}
		if g.Forks == nil {
			g.Forks = map[string]time.Time{}
		}
		g.Forks[seen.Witness] = seen.Latest
		list = append(list, event{ForkSeen, seen.Latest.UTC(), fork{g.where, seen.Witness, seen.Detail}})
	}
	return list
}

// endedBefore tells whether the room has ended before a moment, by the entries
// just gathered.
func (g *gathering) endedBefore(t time.Time) bool {
	end, ok := g.moments[RoomEnded]
	return ok && end.At.Before(t)
}

// wasDrawn tells whether a window was drawn by the entries just gathered.
func (g *gathering) wasDrawn(w fairness.WindowIndex) bool {
	return len(g.windows) > 0 && g.windows[len(g.windows)-1].Window >= w
}

// outgoing returns what the events of a room give to send.
func (f *follower) outgoing(r pghook.Room, o *listener, w where, events []event) (out pghook.Outgoing, err error) {
	for i := range events {
		e := &events[i]
		list, err := f.deliveries(o, r.Slug, e)
		if err != nil {
			return out, err
		}
		out.Deliveries = append(out.Deliveries, list...)
		kind, text := alertOf(e)
		if kind == "" || e.at.Before(o.alerts.Since) {
			continue
		}
		alert, err := f.alert(o, kind, w, text)
		if err != nil {
			return out, err
		}
		if len(alert.Deliveries) > 0 {
			out.Alerts = append(out.Alerts, alert)
		}
	}
	return out, nil
}

// alertOf returns the alert that an event is worth, "" for none.
func alertOf(e *event) (AlertKind, string) {
	switch data := e.data.(type) {
	case late:
		return AlertBeaconLate, fmt.Sprintf("The draw of window %d has waited for round %d of the beacon since %s. "+
			"Nobody loses a place, and places are drawn as soon as the round is there. Are the relays of the beacon within the server's reach?",
			data.Window, data.Round, clock(data.Due))
	case fork:
		return AlertForkSeen, fmt.Sprintf("%s has seen another history of this room than the database has: %s. "+
			"The servers hold the room: nobody joins, is called or goes in until it is recovered. "+
			"Was a backup restored, did a standby take over that lagged behind, or do two servers run this room from different databases? "+
			"Run proofline recover on the machine of a server: it shows what is missing, and how the room goes on.", data.Witness, data.Detail)
	case paused:
		if data.Held {
			return AlertPaused, "The room is held since " + clock(data.At) + ". People can still join. Nobody is called, and called people cannot go in, until the room is resumed. Their time to go in stands still."
		}
		return AlertPaused, "Calls are paused since " + clock(data.At) + ". People can still join, and called people can go in. Nobody is called until the room is resumed."
	case moment:
		if e.kind == RoomEnded {
			return AlertEnded, "The room has ended at " + clock(data.At) + ". Nobody can join any more, and nobody is called."
		}
	}
	return "", ""
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
