package rehearse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits on rehearsals in this process.
const (
	maxPerOrg  = 1
	maxRunning = 4
	maxListed  = 20 // ended rehearsals that are still listed
)

// lead is the time until a copy opens, lasts the maximum duration of a rehearsal, and lingers how
// long the line must stay empty after all synthetic visitors are done.
const (
	lead    = 5 * time.Second
	lasts   = 30 * time.Minute
	lingers = time.Minute
)

// endTimeout limits the time for ending a room.
const endTimeout = 10 * time.Second

var (
	// ErrRunning is returned when the organization already has a running rehearsal.
	ErrRunning = errors.New("this organization already has a running rehearsal: stop it, or wait until it ends")
	// ErrBusy is returned when the server's limit of running rehearsals is reached.
	ErrBusy = errors.New("too many rehearsals on this server: try again in a few minutes")
	// ErrUnknown is returned when no running rehearsal has that slug.
	ErrUnknown = errors.New("no running rehearsal has this name")
	// ErrStopping is returned while the server shuts down.
	ErrStopping = errors.New("the server is stopping")
)

// Rehearsal is the state of a rehearsal. The counts cover synthetic visitors only; the script's are separate.
type Rehearsal struct {
	Slug, Title, URL string
	Org              uuid.UUID
	Of               *uuid.UUID // the rehearsed room or draft
	Started          time.Time
	Opens            time.Time
	Starts           time.Time
	Ends             time.Time // deadline; once over, the actual end
	Over             bool
	Visitors         int          // without the script's
	Script           ScriptResult // of the script; without Tickets: there is none
	Progress
}

// Progress counts what the synthetic visitors have done.
type Progress struct {
	Joined   int
	Called   int
	Admitted int
	Missed   int // called, but did not claim
	Left     int // left before being called
	Failed   int // could not join
}

// through returns the number of visitors who have left the line.
func (p Progress) through() int { return p.Admitted + p.Missed + p.Left + p.Failed }

// Rehearsals manages the rehearsals of a server. It is safe for concurrent use.
type Rehearsals struct {
	rooms    *room.Rooms
	networks Networks
	log      *slog.Logger
	lead     time.Duration
	lingers  time.Duration
	lasts    time.Duration

	ctx    context.Context // done when the server stops
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	runs   []*run     // oldest first; the latest ended ones stay listed
	closed bool
}

// New returns the rehearsals of a server. The joins of a script are charged to networks.
func New(rooms *room.Rooms, networks Networks, log *slog.Logger) *Rehearsals {
	ctx, cancel := context.WithCancel(context.Background())
	return &Rehearsals{
		rooms: rooms, networks: networks, log: log, lead: lead, lingers: lingers, lasts: lasts,
		ctx: ctx, cancel: cancel,
	}
}

// Start makes a copy of a room and sends it the visitors of a plan. owner names the organization
// and the rehearsed room. It returns [ErrRunning], [ErrBusy], [ErrStopping], an
// [*invalid.Error] or an error of the database.
func (rs *Rehearsals) Start(ctx context.Context, owner pgroom.Owner, base room.Config, p Plan) (Rehearsal, error) {
	p = p.withDefaults()
	if err := p.problems().Err(); err != nil {
		return Rehearsal{}, err
	}
	one, err := rs.reserve(owner)
	if err != nil {
		return Rehearsal{}, err
	}
	owner.Host = nil // copies are published under the server's own host
	script := p.newScript(base)
	one.desk, err = newDesk(&base)
	var made copied
	if err == nil {
		made, err = rs.create(ctx, owner, base, &p) // after the desk has made its keys, which may take seconds
	}
	if err != nil {
		rs.forget(one)
		rs.work.Done()
		return Rehearsal{}, fmt.Errorf("start rehearsal: %w", err)
	}
	one.begin(made.room, made.config, p, made.began)
	one.note(func(r *Rehearsal) { r.Script = script })
	go func() {
		defer rs.work.Done()
		one.foresee(rs, &p, made.config)
		one.play(rs, p.guests(made.config, &script.Entrance))
		rs.over(one)
	}()
	return one.state(), nil
}

// copied is a copy that has been published.
type copied struct {
	room   *room.Room
	config room.Config
	began  time.Time // a moment before it was published
}

// maxLead is the largest lead of a copy.
const maxLead = time.Minute

// create publishes a copy. On a machine so slow that the copy would exist only after its opening, it tries again with
// a larger lead.
func (rs *Rehearsals) create(ctx context.Context, owner pgroom.Owner, base room.Config, p *Plan) (copied, error) {
	slug := ""
	for lead := rs.lead; ; lead *= 4 {
		now := time.Now()
		c := Copy(base, now.Add(lead), now.Add(rs.lasts), p.Before, p.Window)
		c.Slug, c.Outflow.PerMinute = cmp.Or(slug, c.Slug), cmp.Or(p.PerMinute, c.Outflow.PerMinute)
		r, err := rs.rooms.CreateFor(ctx, owner, c)
		if err == nil || time.Now().Before(*c.Opens) || lead >= maxLead {
			return copied{r, c, now}, err
		}
		slug = c.Slug
	}
}

// reserve adds a run if the limits allow it.
func (rs *Rehearsals) reserve(owner pgroom.Owner) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	all, own := 0, 0
	for _, one := range rs.runs {
		if one.isOver() {
			continue
		}
		all++
		if one.owner.Org == owner.Org {
			own++
		}
	}
	switch {
	case rs.closed:
		return nil, ErrStopping
	case own >= maxPerOrg:
		return nil, ErrRunning
	case all >= maxRunning:
		return nil, ErrBusy
	}
	one := newRun(rs.ctx, owner)
	rs.runs = append(rs.runs, one)
	rs.work.Add(1)
	return one, nil
}

func (rs *Rehearsals) forget(one *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.runs = slices.DeleteFunc(rs.runs, func(other *run) bool { return other == one })
}

// over marks a run as over, and drops the oldest runs beyond maxListed.
func (rs *Rehearsals) over(one *run) {
	one.finish(time.Now())
	rs.mu.Lock()
	defer rs.mu.Unlock()
	kept := 0
	for i := len(rs.runs) - 1; i >= 0; i-- {
		if rs.runs[i].isOver() {
			if kept++; kept > maxListed {
				rs.runs = slices.Delete(rs.runs, i, i+1)
			}
		}
	}
}

// List returns an organization's rehearsals on this server, newest first: running ones and the
// latest that have ended.
func (rs *Rehearsals) List(org uuid.UUID) []Rehearsal {
	var list []Rehearsal
	for _, one := range slices.Backward(rs.of(org)) {
		list = append(list, one.state())
	}
	return list
}

// of returns an organization's runs whose room exists, oldest first.
func (rs *Rehearsals) of(org uuid.UUID) (list []*run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, one := range rs.runs {
		if one.owner.Org == org && one.isMade() {
			list = append(list, one)
		}
	}
	return list
}

// Stop ends a rehearsal and its room, and waits until both have ended. It returns [ErrUnknown] or
// the error of ctx.
func (rs *Rehearsals) Stop(ctx context.Context, org uuid.UUID, slug string) error {
	for _, one := range rs.of(org) {
		if one.state().Slug != slug || one.isOver() {
			continue
		}
		one.cancel()
		select {
		case <-one.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop rehearsal: %w", ctx.Err())
		}
	}
	return ErrUnknown
}

// Close stops all rehearsals and ends their rooms, waiting until ctx is done. Call it before
// closing the rooms.
func (rs *Rehearsals) Close(ctx context.Context) error {
	rs.mu.Lock()
	rs.closed = true
	rs.mu.Unlock()
	rs.cancel()
	done := make(chan struct{})
	go func() { rs.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close rehearsals: %w", ctx.Err())
	}
}
