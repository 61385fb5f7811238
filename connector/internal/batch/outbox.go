// Package batch sends touches and releases of sessions to rooms, many in one request.
package batch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
)

// maxQueued limits the touches and releases that wait to be sent.
const maxQueued = 100_000

// MaxBatch is the maximum number of touches and releases in one request.
const MaxBatch = 500

// Room accepts updates of its sessions.
type Room interface {
	// URL returns the room's URL.
	URL() string
	// Update sends updates: see [roomapi.Server.Update].
	Update(ctx context.Context, b roomapi.Batch) (roomapi.Batch, error)
}

// update is a touch or release of a session.
type update struct {
	room    Room
	pass    id.ID
	maxEnds int64
	token   string

	isRelease bool // otherwise it is a touch
}

// Outbox queues touches and releases by room. It is safe for concurrent use.
type Outbox struct {
	options Options
	full    chan struct{} // signals that a room has a full batch

	touched, dropped atomic.Uint64

	mu    sync.Mutex // guards the fields below
	rooms map[Room]*roomQueue
	n     int // number of queued updates of all rooms
}

// Options configures an [Outbox].
type Options struct {
	Interval time.Duration  // time between batches
	Sessions *session.Store // store that removes the sessions that have ended
	Group    *background.Group
	Now      func() time.Time
	Log      *slog.Logger
}

// New returns an empty outbox.
func New(o Options) *Outbox {
	return &Outbox{options: o, full: make(chan struct{}, 1), rooms: map[Room]*roomQueue{}}
}

// Touched returns the number of sessions extended at their room.
func (o *Outbox) Touched() uint64 { return o.touched.Load() }

// Dropped returns the number of updates that could not be delivered.
func (o *Outbox) Dropped() uint64 { return o.dropped.Load() }

// Touch queues a touch. It does not block. It returns false if the outbox is full, and the touch is
// dropped.
func (o *Outbox) Touch(rm Room, s *session.Session) bool {
	return o.queue(update{room: rm, pass: s.Pass, maxEnds: s.MaxEnds, token: s.Token})
}

// Release queues a release, which replaces a touch. It does not block: if the outbox is full, the release is
// dropped.
func (o *Outbox) Release(rm Room, s *session.Session) {
	o.queue(update{room: rm, pass: s.Pass, maxEnds: s.MaxEnds, token: s.Token, isRelease: true})
}

func (o *Outbox) queue(j update) bool {
	if o.add(j) {
		return true
	}
	o.dropped.Add(1)
	return false
}

// roomQueue holds the updates for one room, by pass.
type roomQueue struct {
	touch, release map[id.ID]update
	isSending      bool // a batch is being sent
}

// batch holds the updates of one request.
type batch struct{ touch, release []update }

func (l *roomQueue) size() int { return len(l.touch) + len(l.release) }

func (b *batch) size() int { return len(b.touch) + len(b.release) }

// queueOf returns the queue of a room. The caller holds the lock.
func (o *Outbox) queueOf(room Room) *roomQueue {
	l := o.rooms[room]
	if l == nil {
		l = &roomQueue{touch: map[id.ID]update{}, release: map[id.ID]update{}}
		o.rooms[room] = l
	}
	return l
}

// add queues an update. It returns false if the outbox is full.
func (o *Outbox) add(j update) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n >= maxQueued {
		return false
	}
	o.put(j)
	if l := o.queueOf(j.room); l.size() >= MaxBatch && !l.isSending {
		background.Notify(o.full)
	}
	return true
}

// put queues an update; a release replaces a touch. The caller holds the lock.
func (o *Outbox) put(j update) {
	l := o.queueOf(j.room)
	before := l.size()
	if j.isRelease {
		delete(l.touch, j.pass)
		l.release[j.pass] = j
	} else if _, ok := l.release[j.pass]; !ok {
		l.touch[j.pass] = j
	}
	o.n += l.size() - before
}

// take returns a batch for each room that has none in flight, releases first.
func (o *Outbox) take() map[Room]batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[Room]batch{}
	for room, l := range o.rooms {
		if l.isSending {
			continue
		}
		var b batch
		b.release = takeSome(l.release, MaxBatch)
		b.touch = takeSome(l.touch, MaxBatch-len(b.release))
		o.n -= b.size()
		l.isSending = true
		all[room] = b
	}
	return all
}

// takeSome removes and returns up to most updates.
func takeSome(jobs map[id.ID]update, most int) (list []update) {
	for pass, j := range jobs {
		if len(list) == most {
			break
		}
		list = append(list, j)
		delete(jobs, pass)
	}
	return list
}

// done ends the sending of a batch, and requeues the updates in b.
func (o *Outbox) done(room Room, b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, j := range b.release {
		o.put(j)
	}
	for _, j := range b.touch {
		o.put(j)
	}
	l := o.queueOf(room)
	l.isSending = false
	switch n := l.size(); {
	case n == 0:
		delete(o.rooms, room)
	case n >= MaxBatch && b.size() == 0: // the room accepts batches
		background.Notify(o.full)
	}
}

// clear drops all updates, and returns their number.
func (o *Outbox) clear() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.n
	o.rooms, o.n = map[Room]*roomQueue{}, 0
	return n
}

// Deliver sends batches to the rooms, once per interval or when one is full,
// until ctx ends, and then sends the rest as long as rooms answer.
func (o *Outbox) Deliver(ctx context.Context) {
	tick := time.NewTicker(o.options.Interval)
	defer tick.Stop()
	var underWay sync.WaitGroup
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-o.full:
		case <-ctx.Done():
		}
		for room, b := range o.take() {
			underWay.Go(func() { o.send(ctx, room, b) })
		}
	}
	underWay.Wait()
	for o.sendAll(ctx) {
	}
	if n := o.clear(); n > 0 {
		o.dropped.Add(uint64(n))
		o.options.Log.Error("cannot deliver session updates: rooms are out of reach", "lost", n)
	}
}

// sendAll sends a batch to each room. It returns false if there was nothing to send, or no room
// answered.
func (o *Outbox) sendAll(ctx context.Context) bool {
	var all sync.WaitGroup
	var answered atomic.Bool
	for room, b := range o.take() {
		all.Go(func() {
			if o.send(ctx, room, b) {
				answered.Store(true)
			}
		})
	}
	all.Wait()
	return answered.Load()
}

// send sends one batch to a room, and requeues it if the room is out of reach.
func (o *Outbox) send(ctx context.Context, room Room, b batch) bool {
	err := background.ErrPanic // a batch whose sending panics is dropped, because it would panic again
	o.options.Group.Run("sending a batch", func() { err = o.post(ctx, room, b) })
	if errors.Is(err, roomapi.ErrUnreachable) {
		o.done(room, b)
		return false
	}
	o.done(room, batch{})
	if err != nil {
		o.dropped.Add(uint64(b.size()))
		o.options.Log.Error("room refuses session updates", "room", room.URL(), "lost", b.size(), "err", err)
	}
	return true
}

// post sends a batch. Sessions that the room does not extend end here. Errors: those of
// [Room.Update].
func (o *Outbox) post(ctx context.Context, room Room, b batch) error {
	said, err := room.Update(ctx, roomapi.Batch{Touch: tokens(b.touch), Release: tokens(b.release)})
	if err != nil {
		return err
	}
	now := o.options.Now()
	for i, word := range said.Touch {
		if word == "ok" {
			o.touched.Add(1)
		} else {
			o.options.Sessions.End(b.touch[i].pass, b.touch[i].maxEnds, now)
		}
	}
	return nil
}

func tokens(jobs []update) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.token
	}
	return list
}
