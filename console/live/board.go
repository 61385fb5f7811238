package live

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// ErrOver is returned to watchers when the room has left memory or the node stops. They should
// connect again.
var ErrOver = errors.New("this node no longer serves the room: connect again")

// board hands the latest document of a room to all its watchers. A new document replaces the
// previous one, so slow watchers miss some and delay no others. The zero value is ready to use.
type board struct {
	mu      sync.Mutex // guards the fields below
	watched int
	latest  []byte
	changed chan struct{} // closed by the next post; nil while no watcher waits
	closed  bool
}

func (b *board) hasWatchers() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watched > 0
}

// post publishes a document.
func (b *board) post(document []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest = document
	b.wake()
}

// close ends all watches.
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
		b.latest = nil // it would be outdated for later watchers
	}
}

// next waits for the next post. It returns [ErrOver] or the error of ctx.
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

// watcherLimit limits the number of watchers.
type watcherLimit struct {
	max, maxOwn int

	mu       sync.Mutex // guards both maps
	all      int
	byHolder map[uuid.UUID]int
}

// acquire counts a watcher for a person or token, and reports whether the limits allow it.
func (s *watcherLimit) acquire(holder uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.max || s.byHolder[holder] >= s.maxOwn {
		return false
	}
	if s.byHolder == nil {
		s.byHolder = map[uuid.UUID]int{}
	}
	s.all++
	s.byHolder[holder]++
	return true
}

func (s *watcherLimit) release(holder uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byHolder[holder]--; s.byHolder[holder] == 0 {
		delete(s.byHolder, holder)
	}
}

// Watch is a subscription to the figures of a room.
type Watch struct {
	live   *Live
	track  *track
	holder uuid.UUID
	once   sync.Once
}

// Watch subscribes a person or token to the figures of a room. The result must be closed. It
// returns [ErrStreams] or an error of [room.Rooms.Get].
func (l *Live) Watch(ctx context.Context, slug string, holder uuid.UUID) (*Watch, error) {
	if !l.watchers.acquire(holder) {
		return nil, ErrStreams
	}
	t, err := l.find(ctx, slug)
	if err != nil {
		l.watchers.release(holder)
		return nil, err
	}
	t.board.watch(1)
	return &Watch{live: l, track: t, holder: holder}, nil
}

// Now returns the current figures and the series of the last 15 minutes as JSON, for the first view
// of a dashboard.
func (w *Watch) Now() (figures, past []byte) {
	v := w.track.room.Metrics()
	return w.live.encode(w.track, &v), w.track.encodeSeries()
}

// Next waits for the next figures, at most one document a second. All watchers get the same bytes.
// It returns [ErrOver] or the error of ctx.
func (w *Watch) Next(ctx context.Context) ([]byte, error) { return w.track.board.next(ctx) }

// Close ends the subscription. It may be called more than once.
func (w *Watch) Close() {
	w.once.Do(func() {
		w.track.board.watch(-1)
		w.live.watchers.release(w.holder)
	})
}
