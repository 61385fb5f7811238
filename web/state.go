package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/poll"
	"github.com/proofline/proofline/web/reply"
)

// A document is rendered again when the room has changed and the document is at least minAge old. At maxAge it is
// rendered in any case, because it contains the time.
const (
	minAge = 250 * time.Millisecond
	maxAge = time.Second
)

var stateCache = []string{"public, max-age=1, stale-while-revalidate=5"}

// document is the rendered state of a room.
type document struct {
	snapshot *room.Snapshot
	rendered time.Time
	body     []byte
	length   []string // Content-Length
	etag     []string
}

// documents caches the latest document of each room, so that a poll costs only sending it.
type documents struct {
	bySlug      sync.Map // values are *rendering
	listenAhead uint64   // maximum number of people ahead for the stream, see [streamAhead]; 0: no stream
}

type rendering struct {
	mu     sync.Mutex // held while rendering
	latest atomic.Pointer[document]
}

// feed serves the public state of rooms, to clients that poll and as event streams.
type feed struct {
	documents documents
	budgets   *budgets
	max       int             // maximum number of open streams
	open      *atomic.Int64   // number of open streams
	closing   <-chan struct{} // closed when the server stops
}

func newFeed(b *budgets, maxStreams int, open *atomic.Int64, closing <-chan struct{}) *feed {
	f := &feed{budgets: b, max: maxStreams, open: open, closing: closing}
	if maxStreams > 0 {
		f.documents.listenAhead = streamAhead
	}
	return f
}

// state serves the public state of a room. All clients get the same bytes, without cookies, so any
// cache can serve them.
func (f *feed) state(c echo.Context, r *room.Room) error {
	d := f.documents.of(r)
	h := c.Response().Header()
	h["Cache-Control"] = stateCache
	h["Etag"] = d.etag
	if reply.IsKnown(c.Request(), d.etag[0]) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = reply.JSON
	h["Content-Length"] = d.length
	c.Response().WriteHeader(http.StatusOK)
	_, err := c.Response().Write(d.body)
	return err
}

// of returns a room's document. While one caller renders it, the others get the previous one, unless
// that is too old.
func (ds *documents) of(r *room.Room) *document {
	found, ok := ds.bySlug.Load(r.Slug)
	if !ok {
		found, _ = ds.bySlug.LoadOrStore(r.Slug, &rendering{})
	}
	g, _ := found.(*rendering)
	now := time.Now()
	d := g.latest.Load()
	if d.isFresh(r.Snapshot(), now) {
		return d
	}
	if d == nil || now.Sub(d.rendered) >= maxAge {
		g.mu.Lock()
	} else if !g.mu.TryLock() {
		return d
	}
	defer g.mu.Unlock()
	if d = g.latest.Load(); !d.isFresh(r.Snapshot(), time.Now()) {
		d = render(r, ds.listenAhead)
		g.latest.Store(d)
	}
	return d
}

func (d *document) isFresh(s *room.Snapshot, now time.Time) bool {
	if d == nil {
		return false
	}
	age := now.Sub(d.rendered)
	return age < minAge || age < maxAge && d.snapshot == s
}

func render(r *room.Room, listenAhead uint64) *document {
	d := &document{snapshot: r.Snapshot(), rendered: time.Now()}
	var o object
	o.reset()
	now := r.Now()
	o.state(r, d.snapshot, now)
	o.poll(poll.Room(d.snapshot, now), poll.Longest(d.snapshot), poll.Rest(d.snapshot), listenAhead)
	// The tag does not include the time of rendering, so that clients need not fetch an unchanged
	// room again.
	sum := sha256.Sum256(o.b)
	d.etag = []string{`W/"` + hex.EncodeToString(sum[:8]) + `"`}
	o.time("now", now)
	o.close()
	d.body, d.length = o.b, []string{strconv.Itoa(len(o.b))}
	return d
}

// state writes the public state.
func (o *object) state(r *room.Room, s *room.Snapshot, now time.Time) {
	o.text("slug", r.Slug)
	o.text("title", s.Title)
	o.text("origin", r.Origin)
	o.text("vkey", r.VKey)
	o.text("phase", string(s.Phase(now)))
	o.time("opens", s.Opens)
	o.time("starts", s.Starts)
	if settings, _ := r.Settings(); settings.TimeZone != "" {
		o.text("time_zone", settings.TimeZone)
	}
	if s.Closes != nil {
		o.time("closes", *s.Closes)
	} else {
		o.null("closes")
	}
	o.flag("paused", s.Paused)
	o.flag("claims_frozen", r.Snapshot().ClaimsFrozen)
	o.flag("full", r.IsFull())
	if s.Gate != room.GateNone { // open: visitors enter without waiting; absent: the room has no gate
		o.text("gate", string(s.Gate))
	}
	o.withdrawn(s)
	o.message(s.Message(now))
	o.number("size", s.Size)
	o.number("arrivals", s.Counts.Arrivals)
	o.open("outflow")
	o.number("per_minute", uint64(s.Outflow.PerMinute))
	o.number("max_active", uint64(s.Outflow.MaxActive))
	if l := s.Limit; l != nil {
		o.number("free", l.Free)
		o.time("first_free", l.First)
		o.decimal("freed_per_minute", l.PerMinute)
	}
	if s.Pull {
		o.text("by", wire.ByPull)
	}
	o.close()
	if s.Seats > 0 {
		o.open("seats")
		o.number("total", uint64(s.Seats))
		o.number("called", s.Counts.Held)
		o.number("admitted", s.Counts.Sold)
		o.close()
	}
	if s.Party > 0 {
		o.number("party", uint64(s.Party))
	}
	if s.Door != nil {
		o.door(s.Door)
	}
	o.windows(s, now)
	o.slots(s)
	o.lanes(s)
}

// slots writes the lots in each slot of the first window, by lane, until that window is drawn.
func (o *object) slots(s *room.Snapshot) {
	if lots := s.SlotLots(); lots != nil {
		text, _ := json.Marshal(lots) // numbers can be encoded
		o.open("slots")
		o.number("length_ms", uint64(s.Slots.Milliseconds())) //nolint:gosec // not negative
		o.name("lots")
		o.b = append(o.b, text...)
		o.close()
	}
}

// message writes the organizer's message in its canonical form, whose hash is in the transcript.
func (o *object) message(m *room.Message) {
	if m == nil {
		o.null("message")
		return
	}
	o.name("message")
	o.b = append(o.b, m.Canonical()...)
}

// withdrawn writes the number of revoked tickets and prefixes of the latest ones, from which a page
// learns that its ticket may be revoked.
func (o *object) withdrawn(s *room.Snapshot) {
	if s.Counts.Revoked == 0 {
		return
	}
	o.open("withdrawn")
	o.number("count", s.Counts.Revoked)
	o.list("latest")
	for i, ticket := range s.Withdrawn {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, []byte(ticket))
	}
	o.closeList()
	o.close()
}

// poll writes the polling intervals, and the last place whose page should use the stream.
func (o *object) poll(after, maximum, rest time.Duration, listenAhead uint64) {
	o.open("poll")
	o.number("after_ms", uint64(after.Milliseconds()))  //nolint:gosec // not negative
	o.number("most_ms", uint64(maximum.Milliseconds())) //nolint:gosec // not negative
	o.number("rest_ms", uint64(rest.Milliseconds()))    //nolint:gosec // not negative
	o.name("jitter")
	o.b = append(o.b, poll.Jitter...)
	o.number("listen_ahead", listenAhead)
	o.close()
}

// windows writes the open window and the latest windows with arrivals.
func (o *object) windows(s *room.Snapshot, now time.Time) {
	if w, ok := s.Window(now); ok {
		o.open("window")
		o.window(&w)
		o.close()
	} else {
		o.null("window")
	}
	o.list("windows")
	for i := range s.Windows {
		w := &s.Windows[i]
		o.open("")
		o.window(w)
		o.flag("frozen", w.Frozen)
		o.flag("drawn", w.Drawn)
		o.millis("draws", int64(w.Draws))
		if w.Drawn {
			o.number("first_position", uint64(w.First))
		} else {
			o.null("first_position")
		}
		o.close()
	}
	o.closeList()
}

func (o *object) window(w *fairness.WindowSum) {
	o.number("index", uint64(w.Index))
	o.millis("from", int64(w.From))
	o.millis("to", int64(w.To))
	o.number("arrivals", uint64(w.Arrivals))
}

// lanes writes the counts of each lane.
func (o *object) lanes(s *room.Snapshot) {
	o.open("lanes")
	for i := range s.Lanes {
		o.lane(&s.Lanes[i], s.HasGaps())
	}
	o.close()
}

// lane writes the counts of a lane; with the number of tickets called if places may be nobody's.
func (o *object) lane(l *room.Lane, hasGaps bool) {
	n := &l.Counts
	o.open(string(l.Name))
	o.number("weight", uint64(l.Weight))
	if len(l.Needs) > 0 {
		o.texts("needs", l.Needs)
	}
	o.number("arrivals", n.Arrivals)
	o.number("drawn", n.Drawn)
	o.number("assigned", n.Assigned)
	o.number("called", n.Called)
	if hasGaps {
		o.number("passed", l.Passed)
	}
	o.number("admitted", n.Admitted)
	o.number("skipped", n.NoShows+n.Left+n.TooLarge+n.Revoked)
	o.number("waiting", n.Waiting)
	o.close()
}
