package live

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Time spans of rates.
const (
	rateSpan   = 5 * time.Second  // arrivals and entries per second
	recentSpan = 10 * time.Minute // recent no-shows
)

// Figures describes a room at a moment for its organizer. Null means unknown.
type Figures struct {
	At       time.Time     `json:"at"`
	Slug     string        `json:"slug"`
	Title    string        `json:"title"`
	Phase    room.Phase    `json:"phase"`
	Message  *room.Message `json:"message"` // current message to visitors; null: none
	Opens    time.Time     `json:"opens"`
	Starts   time.Time     `json:"starts"`
	Closes   *time.Time    `json:"closes"` // null: never
	Arrivals uint64        `json:"arrivals"`
	Rate     *float64      `json:"arrival_rate"` // per second, over the last 5 seconds
	Waiting  uint64        `json:"waiting"`      // visitors in line who have not been called
	Windows  []Window      `json:"windows"`      // latest windows with arrivals, at most 12, oldest first
	Earlier  uint64        `json:"earlier"`      // visitors waiting from windows before those
	Drawn    uint64        `json:"drawn"`        // visitors with a place
	Called   uint64        `json:"called"`       // of these, those whose places are called
	Expected uint64        `json:"expected"`     // called visitors whose claim is still open
	Admitted uint64        `json:"admitted"`
	NoShows  uint64        `json:"no_shows"`
	Left     uint64        `json:"left"`
	TooLarge uint64        `json:"too_large"` // parties skipped because too few seats were left
	Revoked  uint64        `json:"revoked"`
	Active   uint64        `json:"active"` // expected plus inside
	Inside   uint64        `json:"inside"` // sessions at the site
	Lanes    []Lane        `json:"lanes"`  // in the order of the policy
	Seats    *Seats        `json:"seats"`  // null: every visitor has one, and there may be any number
	Rates    NoShowRate    `json:"no_show_rate"`
	Joining  *Span         `json:"joining"` // when a visitor who joins now can expect to be called
	Next     Next          `json:"next"`
	Alarms   []Alarm       `json:"alarms"` // what needs the organizer's attention, worst first
	Outflow  Outflow       `json:"outflow"`
	Gate     *Gate         `json:"gate"` // null: the room never had one
	// FailOpen lists the latest 5 fail-open intervals, newest first.
	FailOpen []FailOpen `json:"fail_open"`

	Transcript Transcript `json:"transcript"`
	Beacon     *Beacon    `json:"beacon"` // null: the room has none
	Witnesses  []Witness  `json:"witnesses"`
	Database   Database   `json:"database"`
	Nodes      []Node     `json:"nodes"`
}

// Gate is the state of a safety net's gate, with counts of unqueued sessions.
type Gate struct {
	State   room.Gate `json:"state"`
	Since   time.Time `json:"since"`
	Started uint64    `json:"started"` // unqueued sessions started in the last minute
	Active  uint64    `json:"active"`  // unqueued sessions still active
	Nodes   uint64    `json:"nodes"`   // connectors that share the unqueued sessions that may begin
}

// FailOpen is a fail-open interval: connectors could not reach the room and let visitors in.
type FailOpen struct {
	At       time.Time `json:"at"` // time of recording
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Requests uint64    `json:"requests"` // requests let in
}

// shownFailOpen is the number of fail-open intervals in the figures.
const shownFailOpen = 5

// Lane holds the totals of one lane.
type Lane struct {
	Name     fairness.Lane `json:"name"`
	Share    *float64      `json:"share"` // of the calls, from 0 to 1, while all lanes have visitors in line
	Given    *float64      `json:"given"` // of all places called so far; null: none
	Arrivals uint64        `json:"arrivals"`
	Waiting  uint64        `json:"waiting"` // in line, and not called yet
	Called   uint64        `json:"called"`  // visitors whose places are called, including those who left
	Admitted uint64        `json:"admitted"`
	NoShows  uint64        `json:"no_shows"`
}

// Seats counts seats in a room with parties or with a number of seats.
type Seats struct {
	Max    uint32 `json:"max"`    // seats that may be called and not given back; 0: any number
	Wanted uint64 `json:"wanted"` // of all arrivals
	Held   uint64 `json:"held"`   // of called visitors whose claim is open
	Sold   uint64 `json:"sold"`   // of admitted visitors
}

// Window is a window with arrivals.
type Window struct {
	Index    fairness.WindowIndex `json:"index"`
	From     time.Time            `json:"from"`
	To       time.Time            `json:"to"`
	Arrivals uint64               `json:"arrivals"`
	Waiting  uint64               `json:"waiting"` // visitors not called yet, including those who left; with slots or lots about
	Frozen   bool                 `json:"frozen"`
	Drawn    bool                 `json:"drawn"`
}

// NoShowRate is the share, from 0 to 1, of no-shows among called visitors whose claim is settled.
type NoShowRate struct {
	Recent  *float64 `json:"recent"` // rate of the last 10 minutes
	Overall *float64 `json:"overall"`
}

// Span is the expected time of a call at the current outflow: see [room.Snapshot.Expected]. The
// earliest time assumes that the no-show rate so far continues.
type Span struct {
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
}

// Next lists the next events of a room, as far as they can be predicted.
type Next struct {
	Window *time.Time `json:"window"` // end of the open window; null: no window is open
	Draw   *time.Time `json:"draw"`   // due time of the next draw; null: none is due
	Called *Span      `json:"called"` // call of the last visitor now in line; null: the line is empty, or unknown
}

// Outflow compares admissions with the published pace.
type Outflow struct {
	PerMinute   uint32   `json:"per_minute"` // published pace
	MaxActive   uint32   `json:"max_active"` // 0: no limit
	Pull        bool     `json:"pull"`       // a backend calls visitors
	Minute      *float64 `json:"minute"`     // admissions per minute over the last minute
	FiveMinutes *float64 `json:"five_minutes"`
}

// Transcript is the state of the room's log on this node.
type Transcript struct {
	Entries   uint64     `json:"entries"`
	Rate      *float64   `json:"entry_rate"` // per second, over the last 5 seconds
	Queued    int        `json:"queued"`     // requests that wait for an append
	AppendMS  float64    `json:"append_ms"`  // duration of this node's latest append
	StoredMS  *int64     `json:"stored_ms"`  // time since this node stored entries or had none to store
	StuckMS   int64      `json:"stuck_ms"`   // how long storing due entries has failed; 0: it has not
	Published uint64     `json:"published"`  // size of the published checkpoint
	AgeMS     *int64     `json:"age_ms"`     // age of the published checkpoint
	At        *time.Time `json:"published_at"`
}

// Beacon is the state of the public randomness that draws wait for.
type Beacon struct {
	Waits  int        `json:"waits"`   // number of draws that wait for it
	Due    *time.Time `json:"due"`     // due time of the next draw's round; null: no draw waits
	IsHere bool       `json:"is_here"` // whether that round has arrived
	LateMS int64      `json:"late_ms"` // how long that round is overdue
	// WorkLateMS is how long the round is overdue that work is done for: until then, no visitor can join with work.
	WorkLateMS int64 `json:"work_late_ms"`
}

// Witness is the record of one witness.
type Witness struct {
	Name     string `json:"name"`
	Cosigned int    `json:"cosigned"` // draws among these whose freeze it signed in time
	Draws    int    `json:"draws"`    // number of latest draws considered, at most 10
}

// Database is the state of the database as this node sees it.
type Database struct {
	Answers bool    `json:"answers"`
	AgoMS   int64   `json:"ago_ms"` // time since its latest answer
	TookMS  float64 `json:"took_ms"`
	AheadMS int64   `json:"ahead_ms"` // the database's clock minus this node's
	InUse   int     `json:"connections_in_use"`
	Max     int     `json:"connections_most"`
}

// Node is a server that uses the database.
type Node struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Self       bool      `json:"self"` // the node that serves this document
	Lost       bool      `json:"lost"` // the node was not seen for 15 seconds
	Healthy    bool      `json:"healthy"`
	Started    time.Time `json:"started"`
	Seen       time.Time `json:"seen"`
	Rooms      int       `json:"rooms"`
	Goroutines int       `json:"goroutines"`
	Heap       int64     `json:"heap"` // size of the heap, in bytes
	AheadMS    int64     `json:"ahead_ms"`
	// Refused counts the requests refused since the start, by the limit that refused them: joins,
	// tickets, pages, passes, streams.
	Refused map[string]uint64 `json:"refused"`
}

// AllRefused returns the number of requests refused by all limits together.
func (n Node) AllRefused() (sum uint64) {
	for _, count := range n.Refused {
		sum += count
	}
	return sum
}

// Figures returns a room's current figures. Its errors are those of [room.Rooms.Get].
func (l *Live) Figures(ctx context.Context, slug string) (Figures, error) {
	t, err := l.find(ctx, slug)
	if err != nil {
		return Figures{}, err
	}
	v := t.room.Metrics()
	return l.figures(t, &v), nil
}

// Recent returns the series of the last 15 minutes, as far as this node has sampled them. Its
// errors are those of [room.Rooms.Get].
func (l *Live) Recent(ctx context.Context, slug string) (Series, error) {
	t, err := l.find(ctx, slug)
	if err != nil {
		return Series{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring.series(), nil
}

// encode returns the current figures as JSON.
func (l *Live) encode(t *track, v *room.Metrics) []byte {
	text, err := json.Marshal(l.figures(t, v))
	if err != nil {
		panic(err) // cannot happen: all fields can be encoded
	}
	return text
}

func (t *track) encodeSeries() []byte {
	t.mu.Lock()
	s := t.ring.series()
	t.mu.Unlock()
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot happen: all values are finite numbers
	}
	return text
}

func (l *Live) figures(t *track, v *room.Metrics) Figures {
	s, n := v.Snapshot, &v.Snapshot.Counts
	f := Figures{
		At: utc(v.Now), Slug: t.room.Slug, Title: s.Title, Phase: s.Phase(v.Now), Message: s.Message(v.Now),
		Opens: utc(s.Opens), Starts: utc(s.Starts),
		Arrivals: n.Arrivals, Waiting: s.Counts.InLine, Drawn: n.Drawn, Called: s.Passed, Expected: n.Waiting,
		Admitted: n.Admitted, NoShows: n.NoShows, Left: n.Left, TooLarge: n.TooLarge, Revoked: n.Revoked,
		Active:  v.Active,
		Outflow: Outflow{PerMinute: s.Outflow.PerMinute, MaxActive: s.Outflow.MaxActive, Pull: s.Pull},
		Beacon:  beaconOf(v), Witnesses: make([]Witness, 0, len(v.Witnesses)),
		Database: l.database(), Nodes: l.nodesSeen(),
	}
	if s.Closes != nil {
		closes := utc(*s.Closes)
		f.Closes = &closes
	}
	f.lanes(s)
	f.windows(s)
	f.Transcript = transcriptOf(v)
	f.Rates.Overall = share(n.NoShows, n.Admitted)
	f.Inside = v.Active - min(v.Active, n.Waiting)
	f.Next = nextOf(v)
	if f.Beacon.isLate() { // it is not known when calls resume
		f.Next.Called = nil
	} else {
		f.Joining = joining(s, v.Now)
	}
	f.gate(v)
	for _, w := range v.Witnesses {
		f.Witnesses = append(f.Witnesses, Witness(w))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.rates(&t.ring)
	f.Alarms = f.alarms()
	if l.Seen != nil {
		f.Alarms = withSeen(f.Alarms, l.Seen(t.room.Slug))
	}
	return f
}

// lanes fills in the lanes and the seats.
func (f *Figures) lanes(s *room.Snapshot) {
	f.Lanes = make([]Lane, 0, len(s.Lanes))
	weights := uint64(0)
	for _, l := range s.Lanes {
		weights += uint64(l.Weight)
	}
	for _, l := range s.Lanes {
		n := &l.Counts
		f.Lanes = append(f.Lanes, Lane{l.Name, share(uint64(l.Weight), weights-uint64(l.Weight)),
			share(l.Passed, s.Passed-l.Passed), n.Arrivals, n.InLine, l.Passed, n.Admitted, n.NoShows})
	}
	if s.Party > 0 || s.Seats > 0 {
		f.Seats = &Seats{s.Seats, s.Counts.Seats, s.Counts.Held, s.Counts.Sold}
	}
}

// gate fills in the gate and the fail-open intervals.
func (f *Figures) gate(v *room.Metrics) {
	g := &v.Gate
	if v.Snapshot.Gate != room.GateNone {
		f.Gate = &Gate{v.Snapshot.Gate, utc(g.Since), g.Started, g.Active, g.Nodes}
	}
	f.FailOpen = make([]FailOpen, 0, shownFailOpen)
	for _, u := range slices.Backward(g.FailOpen) {
		if len(f.FailOpen) < shownFailOpen {
			f.FailOpen = append(f.FailOpen, FailOpen{utc(u.At), utc(u.From), utc(u.Until), u.Requests})
		}
	}
}

// utc returns t in the form used in documents.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// windows fills in the latest windows and the number of people waiting in each.
func (f *Figures) windows(s *room.Snapshot) {
	f.Windows = make([]Window, 0, len(s.Windows))
	places := s.Counts.Arrivals - s.Passed // visitors not called yet
	for i := range s.Windows {
		w := &s.Windows[i]
		one := Window{
			Index: w.Index, From: time.UnixMilli(int64(w.From)).UTC(), To: time.UnixMilli(int64(w.To)).UTC(),
			Arrivals: uint64(w.Arrivals), Waiting: uint64(s.Uncalled[i]), Frozen: w.Frozen, Drawn: w.Drawn,
		}
		places -= min(places, one.Waiting)
		f.Windows = append(f.Windows, one)
	}
	f.Earlier = places
}

// rates fills in the rates from the sampled ring. A room that has ended has none.
func (f *Figures) rates(r *ring) {
	if f.Phase == room.PhaseEnded {
		return
	}
	if from, to, ok := r.since(rateSpan); ok {
		f.Rate = rate(perSecond(from, to, arrivals))
		f.Transcript.Rate = rate(perSecond(from, to, entries))
	}
	if from, to, ok := r.since(time.Minute); ok {
		f.Outflow.Minute = rate(60 * perSecond(from, to, admitted))
	}
	if from, to, ok := r.since(5 * time.Minute); ok {
		f.Outflow.FiveMinutes = rate(60 * perSecond(from, to, admitted))
	}
	if from, to, ok := r.since(recentSpan); ok {
		f.Rates.Recent = share(uint64(noShows(to)-noShows(from)), uint64(admitted(to)-admitted(from)))
	}
}

func rate(f float64) *float64 {
	f = round(f)
	return &f
}

// share returns one/(one+others), or nil if both are 0.
func share(one, others uint64) *float64 {
	if one+others == 0 {
		return nil
	}
	f := float64(int64(float64(one)/float64(one+others)*10_000+0.5)) / 10_000
	return &f
}

// doubt is a number of imaginary admissions with which the no-show rate starts, so that the first
// visitors do not distort it.
const doubt = 20

// joining returns when a visitor who joins now can expect to be called; nil if that is unknown or
// joining is over.
func joining(s *room.Snapshot, now time.Time) *Span {
	w, ok := s.Window(now)
	if !ok {
		return nil
	}
	n := &s.Counts
	st := fairness.Standing{
		Status: fairness.StatusWaiting, Window: w.Window,
		AheadMin: n.Arrivals - uint64(w.Arrivals) - min(s.Passed, n.Arrivals-uint64(w.Arrivals)),
		AheadMax: n.Arrivals - s.Passed,
	}
	st.BeforeMin, st.BeforeMax = st.AheadMin, st.AheadMax
	return expected(s, st, now)
}

// nextOf returns the next events of a room.
func nextOf(v *room.Metrics) Next {
	var n Next
	s := v.Snapshot
	moment := func(t time.Time) *time.Time {
		t = utc(t)
		return &t
	}
	if open, ok := s.Window(v.Now); ok {
		n.Window = moment(time.UnixMilli(int64(open.To)))
	}
	for i := range s.Windows {
		if w := &s.Windows[i]; !w.Drawn && n.Draw == nil && !s.Ended {
			n.Draw = moment(s.Draws(w.Window))
		}
	}
	if len(s.Windows) > 0 && s.Counts.InLine > 0 {
		last := s.Windows[len(s.Windows)-1]
		st := fairness.Standing{Status: fairness.StatusWaiting, Window: last.Window}
		if last.Drawn {
			st.Status = fairness.StatusDrawn
		}
		st.AheadMax = s.Counts.Arrivals - min(s.Passed+1, s.Counts.Arrivals)
		st.AheadMin = st.AheadMax
		st.BeforeMin, st.BeforeMax = st.AheadMin, st.AheadMax
		n.Called = expected(s, st, v.Now)
	}
	return n
}

// expected returns the expected time of the call for a standing; nil if unknown.
func expected(s *room.Snapshot, st fairness.Standing, now time.Time) *Span {
	span, ok := s.Expected(st, now)
	if !ok {
		return nil
	}
	n := &s.Counts
	alone := st
	alone.AheadMin, alone.AheadMax, alone.BeforeMin, alone.BeforeMax = 0, 0, 0, 0
	base, _ := s.Expected(alone, now)
	come := 1 - float64(n.NoShows)/float64(n.NoShows+n.Admitted+doubt)
	earliest := base.Earliest.Add(time.Duration(float64(span.Earliest.Sub(base.Earliest)) * come))
	return &Span{utc(earliest), utc(span.Latest)}
}

func transcriptOf(v *room.Metrics) Transcript {
	t := Transcript{Entries: v.Snapshot.Size, Queued: v.Queued, AppendMS: millis(v.Appended),
		Published: v.Published.Size}
	t.StuckMS = v.Stuck.Milliseconds()
	if v.Stored >= 0 {
		ago := v.Stored.Milliseconds()
		t.StoredMS = &ago
	}
	if !v.Published.At.IsZero() {
		at, age := utc(v.Published.At), max(v.Now.Sub(v.Published.At), 0).Milliseconds()
		t.At, t.AgeMS = &at, &age
	}
	return t
}

// millis returns a duration in milliseconds with one decimal.
func millis(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

func beaconOf(v *room.Metrics) *Beacon {
	if !v.HasBeacon {
		return nil
	}
	b := &Beacon{Waits: v.Pending}
	if d := v.Snapshot.Door; d != nil && d.Work != nil && d.Work.Signature == nil && !v.Snapshot.Ended {
		b.WorkLateMS = max(v.Now.Sub(d.Work.Due), 0).Milliseconds()
	}
	if len(v.Awaited) == 0 {
		return b
	}
	next := v.Awaited[0]
	due := utc(next.Due)
	b.Due, b.IsHere = &due, next.HasRound
	if late := v.Now.Sub(next.Due); late > 0 && !next.HasRound {
		b.LateMS = late.Milliseconds()
	}
	return b
}

// isLate reports whether draws wait for a round that is overdue.
func (b *Beacon) isLate() bool { return b != nil && b.LateMS > lateBeacon.Milliseconds() }

// isWorkLate reports whether the round that work is done for is overdue.
func (b *Beacon) isWorkLate() bool { return b != nil && b.WorkLateMS > lateBeacon.Milliseconds() }

func (l *Live) database() Database {
	h := l.Rooms.Health()
	d := Database{Answers: h.Answers, TookMS: millis(h.Took), AheadMS: h.Ahead.Milliseconds(), InUse: h.Pool.InUse,
		Max: h.Pool.Max}
	if !h.Answered.IsZero() {
		d.AgoMS = time.Since(h.Answered).Milliseconds()
	}
	return d
}

// nodesSeen returns the nodes known since the latest heartbeat.
func (l *Live) nodesSeen() []Node {
	list := []Node{}
	nodes := l.nodes.Load()
	if nodes == nil {
		return list
	}
	for _, n := range *nodes {
		list = append(list, Node{
			Name: n.Name, Version: n.Version, Self: n.ID == l.id, Lost: n.Ago > lostAfter, Healthy: n.Healthy,
			Started: utc(n.Started), Seen: utc(n.Seen),
			Rooms: n.Rooms, Goroutines: n.Goroutines, Heap: n.Heap, AheadMS: n.Ahead.Milliseconds(),
			Refused: n.Refused,
		})
	}
	return list
}
