// Package quota limits what each organization uses of a server that it shares with others.
//
// The number of rooms is checked in the transaction that creates one. The other limits are approximate: every
// [Interval] a node compares them with what it sees, and until the next comparison the result stands. A node counts
// the visitors of the rooms that it has in memory, and its own streams.
package quota

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/pgroom"
)

// Interval is how often a node compares use and quotas.
const Interval = time.Second

// ErrStreams is returned when as many streams are open at this node as may be, of an organization or in all.
var ErrStreams = errors.New("too many streams are open: poll the state instead")

// Store has the quotas of all organizations. [pgroom.Store] implements it.
type Store interface {
	Usages(ctx context.Context) ([]pgroom.Usage, error)
	Usage(ctx context.Context, org uuid.UUID) (pgroom.Usage, error)
	SetQuota(ctx context.Context, org uuid.UUID, q pgroom.Quota) error
}

// Quotas are the quotas of all organizations, as a node knows them. It is safe for concurrent use.
type Quotas struct {
	store Store
	log   *slog.Logger
	// waiting returns the number of visitors in line at this node's rooms, by organization.
	waiting func() map[uuid.UUID]uint64

	limited atomic.Pointer[map[uuid.UUID]limited]
	shares  sync.Map    // values are *Share, by organization
	failing atomic.Bool // the latest comparison failed
}

// limited is an organization with a quota.
type limited struct {
	pgroom.Quota
	isFull bool // no visitor can join its rooms
}

// New returns quotas of which nothing is known, so nothing is limited. Call
// [Quotas.Compare] every [Interval].
func New(store Store, log *slog.Logger, waiting func() map[uuid.UUID]uint64) *Quotas {
	q := &Quotas{store: store, log: log, waiting: waiting}
	q.limited.Store(&map[uuid.UUID]limited{})
	return q
}

// Compare compares use and quotas. If the database does not answer, what was known before stands.
func (q *Quotas) Compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*Interval)
	defer cancel()
	list, err := q.store.Usages(ctx)
	if err != nil {
		if !q.failing.Swap(true) && ctx.Err() == nil {
			q.log.Warn("cannot read quotas: those read before stand", "err", err)
		}
		return
	}
	q.failing.Store(false)
	next := make(map[uuid.UUID]limited, len(list))
	var waiting map[uuid.UUID]uint64
	if len(list) > 0 {
		waiting = q.waiting()
	}
	for _, u := range list {
		next[u.Org] = limited{u.Quota, reached(waiting[u.Org], u.Waiting) || reached(u.Stored, u.Entries)}
	}
	q.limited.Store(&next)
}

func reached(used, most uint64) bool { return most > 0 && used >= most }

// Of returns the share of an organization.
func (q *Quotas) Of(org uuid.UUID) *Share {
	found, ok := q.shares.Load(org)
	if !ok {
		found, _ = q.shares.LoadOrStore(org, &Share{quotas: q, org: org})
	}
	s, _ := found.(*Share)
	return s
}

// Share is what an organization uses, and may use. It is safe for concurrent use.
type Share struct {
	quotas  *Quotas
	org     uuid.UUID
	streams atomic.Int64
}

func (s *Share) limited() limited { return (*s.quotas.limited.Load())[s.org] }

// IsFull reports whether the quota stops visitors from joining the organization's rooms.
func (s *Share) IsFull() bool { return s.limited().isFull }

// OpenStream counts a stream until done is called, or returns [ErrStreams].
func (s *Share) OpenStream() (done func(), err error) {
	done = func() { s.streams.Add(-1) }
	if most := s.limited().Streams; uint64(s.streams.Add(1)) > most && most > 0 {
		done()
		return nil, ErrStreams
	}
	return done, nil
}

// Usage is a quota and its use.
type Usage struct {
	pgroom.Usage
	InLine uint64 // visitors in line at the rooms that this node has in memory
	Open   uint64 // streams open at this node
}

// Usage returns the organization's quota and its use.
func (s *Share) Usage(ctx context.Context) (Usage, error) {
	stored, err := s.quotas.store.Usage(ctx, s.org)
	return Usage{stored, s.quotas.waiting()[s.org], uint64(max(0, s.streams.Load()))}, err
}

// Set changes the organization's quota. Other nodes know it within [Interval].
func (s *Share) Set(ctx context.Context, q pgroom.Quota) error {
	if err := s.quotas.store.SetQuota(ctx, s.org, q); err != nil {
		return err
	}
	s.quotas.Compare(ctx)
	return nil
}
