package rehearse

import (
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

// Bounds of what goes on at once, in this process.
const (
	mostOfOrg = 1
	mostOfAll = 4
	mostKept  = 20 // rehearsals that are over, and still listed
)

// How long it takes until a copy opens, and how long a rehearsal lasts: at most,
// and after its crowd is through.
const (
	lead    = 5 * time.Second
	lasts   = 30 * time.Minute
	lingers = time.Minute
)

// endTimeout is how long the end of a room may take.
const endTimeout = 10 * time.Second

var (
	// ErrRunning is returned when the organization has a rehearsal under way.
	ErrRunning = errors.New("a rehearsal of this organization is under way: stop it first, or wait for its end")
	// ErrBusy is returned when the server has as many rehearsals as it takes.
	ErrBusy = errors.New("too many rehearsals on this server: try again in some minutes")
	// ErrUnknown is returned when no rehearsal under way has that slug.
	ErrUnknown = errors.New("no such rehearsal under way")
	// ErrStopping is returned while the server shuts down.
	ErrStopping = errors.New("the server is stopping")
)

// Rehearsal is one rehearsal as it stands. The numbers are of the synthetic
// visitors.
type Rehearsal struct {
	Slug, Title, URL string
	Org              uuid.UUID
	Of               *uuid.UUID // the room or draft
	Started          time.Time
	Opens            time.Time
	Starts           time.Time
	Ends             time.Time // at the latest; when it did, once over
	Over             bool
	Visitors         int
	Progress
}

// Progress is how far a crowd has come.
type Progress struct {
	Joined   int
	Called   int
	Admitted int
	Missed   int // were called, and did not claim
	Left     int // gave the place up before
	Failed   int // could not join
}

// through is how many have nothing more to do in the line.
func (p Progress) through() int { return p.Admitted + p.Missed + p.Left + p.Failed }

// Rehearsals are those of a server. Safe for concurrent use.
type Rehearsals struct {
	rooms   *room.Rooms
	log     *slog.Logger
	lead    time.Duration
	lingers time.Duration
	lasts   time.Duration

	ctx    context.Context // ends all
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards all below
	runs   []*run     // oldest first; those that are over are kept for a while
	closed bool
}

// New returns a server's rehearsals.
func New(rooms *room.Rooms, log *slog.Logger) *Rehearsals {
	ctx, cancel := context.WithCancel(context.Background())
	return &Rehearsals{rooms: rooms, log: log, lead: lead, lingers: lingers, lasts: lasts, ctx: ctx, cancel: cancel}
}

// Start makes a copy of a room and lets the crowd of a plan come to it. owner
// says whose it is, and what it rehearses. Errors: [ErrRunning], [ErrBusy],
// [ErrStopping], [*room.InvalidError], and those of the database.
func (rs *Rehearsals) Start(ctx context.Context, owner pgroom.Owner, base room.Config, p Plan) (Rehearsal, error) {
	p = p.withDefaults()
	if problems := p.problems(); len(problems) > 0 {
		return Rehearsal{}, &room.InvalidError{Problems: problems}
	}
	one, err := rs.reserve(owner)
	if err != nil {
		return Rehearsal{}, err
	}
	now := time.Now()
	c := Copy(base, now.Add(rs.lead), now.Add(rs.lasts), p.Before, p.Window)
	owner.Host = nil // a copy is the server's
	r, err := rs.rooms.CreateFor(ctx, owner, c)
	if err != nil {
		rs.forget(one)
		rs.work.Done()
		return Rehearsal{}, fmt.Errorf("start rehearsal: %w", err)
	}
	one.begin(r, c, p, now)
	go func() {
		defer rs.work.Done()
		one.play(rs, p.guests(c))
		rs.over(one)
	}()
	return one.state(), nil
}

// reserve takes a place among the rehearsals under way.
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
	case own >= mostOfOrg:
		return nil, ErrRunning
	case all >= mostOfAll:
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

// over marks a rehearsal, and forgets the oldest of those that are over.
func (rs *Rehearsals) over(one *run) {
	one.finish(time.Now())
	rs.mu.Lock()
	defer rs.mu.Unlock()
	kept := 0
	for i := len(rs.runs) - 1; i >= 0; i-- {
		if rs.runs[i].isOver() {
			if kept++; kept > mostKept {
				rs.runs = slices.Delete(rs.runs, i, i+1)
			}
		}
	}
}

// List returns an organization's rehearsals on this server, newest first: those
// under way, and the latest that are over.
func (rs *Rehearsals) List(org uuid.UUID) []Rehearsal {
	var list []Rehearsal
	for _, one := range slices.Backward(rs.of(org)) {
		list = append(list, one.state())
	}
	return list
}

// of returns an organization's rehearsals whose room is made, oldest first.
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

// Stop ends a rehearsal and its room, and returns once both are over. Errors:
// [ErrUnknown], and that of ctx.
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

// Close stops all rehearsals and ends their rooms, as long as ctx lasts. It
// comes before the rooms are closed.
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
