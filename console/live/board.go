package live

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// ErrOver is returned to those who watch when the room is not in memory any
// more, or the node stops: come again.
var ErrOver = errors.New("the room is not watched here any more")

// board shows one document to everybody who watches a room. What is posted
// replaces what was there: who is slow misses some, and holds up nobody. The
// zero value is ready.
type board struct {
	mu      sync.Mutex // guards all below
	watched int
	latest  []byte
	changed chan struct{} // closed with the next post; nil until somebody waits
	closed  bool
}

func (b *board) isWatched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watched > 0
}

// post shows a document.
func (b *board) post(document []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest = document
	b.wake()
}

// close sends everybody away.
func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

func (b *board) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

func (b *board) watch(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watched += n
	if b.watched == 0 {
		b.latest = nil // nobody should be shown it later
	}
}

// next waits for the post after the one that it returned before. Errors:
// [ErrOver], and that of ctx.
func (b *board) next(ctx context.Context) ([]byte, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrOver
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrOver
	}
	return b.latest, nil
}

// seats bounds how many watch.
type seats struct {
	most, own int

	mu   sync.Mutex // guards both below
	all  int
	whom map[uuid.UUID]int
}

// take takes a seat for somebody, if there is one.
func (s *seats) take(who uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.whom[who] >= s.own {
		return false
	}
	if s.whom == nil {
		s.whom = map[uuid.UUID]int{}
	}
	s.all++
	s.whom[who]++
	return true
}

func (s *seats) leave(who uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.whom[who]--; s.whom[who] == 0 {
		delete(s.whom, who)
	}
}

// Watch is somebody who watches a room.
type Watch struct {
	live  *Live
	track *track
	who   uuid.UUID
	once  sync.Once
}

// Watch begins to watch a room, for a person or token. Errors: [ErrStreams], and
// those of [room.Rooms.Get]. It must be closed.
func (l *Live) Watch(ctx context.Context, slug string, who uuid.UUID) (*Watch, error) {
	if !l.seats.take(who) {
		return nil, ErrStreams
	}
	t, err := l.find(ctx, slug)
	if err != nil {
		l.seats.leave(who)
		return nil, err
	}
	t.board.watch(1)
	return &Watch{live: l, track: t, who: who}, nil
}

// Now returns the present figures and those of the last 15 minutes, as JSON
// documents: what a dashboard begins with.
func (w *Watch) Now() (figures, past []byte) {
	v := w.track.room.Vitals()
	return w.live.encode(w.track, &v), w.track.encodeSeries()
}

// Next waits for the next figures, at most one a second, encoded once for all
// who watch. Errors: [ErrOver], and that of ctx.
func (w *Watch) Next(ctx context.Context) ([]byte, error) { return w.track.board.next(ctx) }

// Close ends the watch. Closing again is no error.
func (w *Watch) Close() {
	w.once.Do(func() {
		w.track.board.watch(-1)
		w.live.seats.leave(w.who)
	})
}
