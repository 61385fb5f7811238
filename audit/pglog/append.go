package pglog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
)

// appendTimeout is the time limit for the work of an append, and for its commit if that does not
// wait for a standby. A slower database is treated as unavailable.
const appendTimeout = 10 * time.Second

// publishInterval is how long the published checkpoint may lag behind the log during appends. After
// the last one, [Store.Publish] catches up.
const publishInterval = 500 * time.Millisecond

// uniqueViolation is PostgreSQL's code for a duplicate key
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const uniqueViolation = "23505"

const (
	// smallBatch is the largest number of entries that a log may have stored last for its next append
	// to share a transaction with other logs. A log that stored more would delay the others.
	smallBatch = 16
	// maxRides limits how many consecutive appends may hold a lock that was requested behind the
	// previous commit: PostgreSQL does not make such a request wait for other nodes that are already
	// waiting.
	maxRides = 16
	// apart is how long after another node's append a log's lock is no longer requested that way.
	apart = time.Second
)

// part is what one transaction appends to one log.
type part struct {
	ctx   context.Context
	log   *Log
	read  Reader
	build func(*Batch) error
	done  chan struct{} // closed when the append has ended; only for appends of a group

	head     head
	batch    *Batch
	tree     *audit.Tree // tree after the append
	ext      *audit.Extension
	signed   []byte
	appended *Appended // nil: not stored
	err      error
}

// Append performs one append: under the room's lock it passes entries of other nodes to read, calls
// build to add new ones, and stores them. It returns nil if build added none. An error of build is
// returned wrapped, and nothing is stored; for any other error see [Log]. Both functions may be
// called by another goroutine.
//
// Logs that append a few entries at a time share transactions. If More reports that work waits, the
// lock for the next append is requested together with the commit: the caller must soon call Append
// or Release.
func (l *Log) Append(ctx context.Context, read Reader, build func(*Batch) error) (*Appended, error) {
	p := &part{ctx: ctx, log: l, read: read, build: build}
	err := l.store.await(ctx)
	switch {
	case err != nil:
	case l.next == nil && l.isSmall:
		l.store.group.append(p)
		err = p.err
	default:
		err = l.appendAlone(p)
	}
	l.isSmall = err == nil && (p.appended == nil || p.batch.Len() <= smallBatch)
	if err != nil {
		return nil, fmt.Errorf("append to log: %w", err)
	}
	return p.appended, nil
}

// errNothing is returned when a part of a joint append adds no entries.
var errNothing = errors.New("there is nothing to append")

// Addition is what [Store.AppendAll] appends to one log; see [Log.Append].
type Addition struct {
	Log   *Log
	Read  Reader
	Build func(*Batch) error
}

// AppendAll appends to several logs in one transaction: all additions are stored, or none. It calls
// the build functions in the order of the logs' ids, until one fails; each must add entries.
func (s *Store) AppendAll(ctx context.Context, additions ...Addition) error {
	parts := make([]*part, len(additions))
	for i, a := range additions {
		a.Log.Release()
		parts[i] = &part{ctx: ctx, log: a.Log, read: a.Read, build: a.Build}
	}
	slices.SortFunc(parts, lockOrder)
	err := s.await(ctx)
	if err == nil {
		err = s.appendWhole(ctx, parts)
	}
	if err != nil {
		return fmt.Errorf("append to logs: %w", err)
	}
	return nil
}

func (s *Store) appendWhole(ctx context.Context, parts []*part) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	t.isWhole = true
	t.requestLocks(parts)
	_, err = t.run(parts, func() []*part { return nil })
	isStored := err == nil
	for _, p := range parts {
		isStored = isStored && p.appended != nil
		err = cmp.Or(p.err, err)
	}
	if err == nil && !isStored {
		err = errNothing
	}
	return err
}

// appendAlone appends in a separate transaction.
func (l *Log) appendAlone(p *part) error {
	t := l.next
	l.next = nil
	if t != nil && !t.isCurrent() {
		_ = t.abort() // the next connection fails with the reason
		t = nil
	}
	parts := []*part{p}
	if t == nil {
		var err error
		if t, err = l.store.begin(p.ctx); err != nil {
			return err
		}
		t.requestLocks(parts)
	}
	riding, err := t.run(parts, func() []*part {
		if l.More == nil || l.rides >= maxRides || time.Since(l.shared) < apart || !l.More() {
			return nil
		}
		return parts
	})
	if err != nil || len(riding) == 0 {
		l.rides = 0
		return p.err
	}
	l.rides++
	l.next = t
	return p.err
}

// Release gives up the lock that the last append requested for the next one, if any.
func (l *Log) Release() {
	if l.next != nil {
		_ = l.next.abort() // the entries are stored; a broken connection releases its lock
		l.next = nil
	}
}

// run appends parts whose locks have been requested, and requests the locks of those that next
// returns behind the commit. Each part gets its result. If it returns other parts, the transaction
// continues with them; otherwise, or with an error, it has ended.
func (t *transaction) run(parts []*part, next func() []*part) (riding []*part, err error) {
	t.limit.Reset(appendTimeout)
	for _, p := range parts {
		defer context.AfterFunc(p.ctx, func() { t.cancel(context.Cause(p.ctx)) })()
	}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(t.explain(err), t.abort())
		for _, p := range parts {
			p.appended = nil
			if p.err == nil {
				p.err = err
			}
		}
	}()
	if err := t.pipeline.Flush(); err != nil {
		return nil, err
	}
	if err := t.readLocks(parts); err != nil {
		return nil, err
	}
	var stored []*part
	for _, p := range parts {
		if p.err == nil {
			p.err = t.prepare(p)
		}
		if p.err == nil && p.batch.Len() > 0 {
			stored = append(stored, p)
		}
		if t.pipeline == nil {
			return nil, p.err // the connection broke
		}
		if t.isWhole && p.err != nil {
			break
		}
	}
	if len(stored) == 0 || t.isWhole && len(stored) < len(parts) {
		_ = t.abort() // nothing is lost: each part has its own error
		return nil, nil
	}
	sent := t.storeEntries(stored)
	t.requestCommit()
	if riding = next(); len(riding) > 0 {
		t.requestLocks(riding)
	}
	t.limit.Reset(t.store.commitTimeout())
	if err := t.pipeline.Flush(); err != nil {
		return riding, err
	}
	if err := t.readCommit(stored, sent); err != nil {
		return riding, err
	}
	for _, p := range stored {
		p.log.tree = p.tree
		p.appended = &Appended{p.ext, p.signed}
	}
	if len(riding) == 0 {
		t.end()
	}
	return riding, nil
}

// prepare reads what other nodes have appended, and builds the batch of a part.
func (t *transaction) prepare(p *part) error {
	l, h := p.log, p.head
	if h.size > l.tree.Size() {
		l.shared = time.Now()
		if err := t.query(func(ctx context.Context, conn *pgx.Conn) error {
			return l.catchUp(ctx, conn, h, p.read.runs)
		}); err != nil {
			return err
		}
	} else if err := l.catchUp(t.ctx, nil, h, p.read.runs); err != nil {
		return err
	}
	if h.held && !l.recovers {
		return ErrHeld
	}
	now := h.now
	if t.store.stamp != nil {
		var err error
		if now, err = t.store.stamp(h.now); err != nil {
			return err
		}
	}
	p.batch = &Batch{Now: max(now.UnixMilli(), h.time), tree: l.tree.Clone()}
	if err := p.build(p.batch); err != nil || p.batch.Len() == 0 {
		return err
	}
	p.tree = l.tree.Clone()
	p.ext = p.tree.Extend(p.batch.leaves)
	var err error
	p.signed, err = audit.SignCheckpoint(audit.Checkpoint{Origin: l.origin, Size: p.ext.Size(), Root: p.ext.Root()},
		l.signer)
	return err
}
