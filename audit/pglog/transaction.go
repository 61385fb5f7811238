package pglog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit"
)

// The statements of an append, by the names under which connections prepare them.
//
// Only read committed lets a transaction that waited for a lock see what the previous holder stored.
// The clock is read outside of the locking sub-select, where it would be read before the wait.
var statements = map[string]string{
	"proofline_begin":  `begin isolation level read committed read write`,
	"proofline_commit": `commit`,
	"proofline_lock": `with head as materialized (
			select room_id, size, root, time_ms, published_at, held_size is not null or abandoned <> '' as held
			from log_heads where room_id = any($1::uuid[]) order by room_id for update)
		select room_id, size, root, time_ms, published_at, held, clock_timestamp() from head`,
	"proofline_entries": `insert into log_bundles (room_id, first, count, entries)
		select * from unnest($1::uuid[], $2::bigint[], $3::int[], $4::bytea[])`,
	"proofline_hashes": `insert into log_tile_roots (room_id, level, index, hash)
		select * from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bytea[])`,
	"proofline_heads": `update log_heads as head
		set size = new.size, root = new.root, time_ms = new.time_ms, checkpoint = new.checkpoint,
			published = case when publish then new.checkpoint else published end,
			published_size = case when publish then new.size else published_size end,
			published_at = case when publish then clock_timestamp() else published_at end
		from unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bigint[], $5::text[], $6::bool[])
			as new (room_id, size, root, time_ms, checkpoint, publish)
		where head.room_id = new.room_id`,
}

// transaction appends to some logs. It sends its statements without waiting for each result: those
// that lock the heads in one write, and those that store entries and commit in another. The locks of
// the next transaction may follow in the same write as the commit, so that they are held when the
// commit's result arrives.
type transaction struct {
	store    *Store
	conn     *pgxpool.Conn
	ctx      context.Context // context of the pipeline
	cancel   context.CancelCauseFunc
	limit    *time.Timer // cancels ctx
	pipeline *pgconn.Pipeline
	isWhole  bool // stores all parts or none; see [Store.AppendAll]
}

// begin takes a connection. The caller must call end or abort.
func (s *Store) begin(ctx context.Context) (*transaction, error) {
	conn, err := s.acquire(ctx, toAppend)
	if err != nil {
		return nil, err
	}
	t := &transaction{store: s, conn: conn}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.limit = time.AfterFunc(appendTimeout, func() { t.cancel(context.DeadlineExceeded) })
	for name, sql := range statements {
		if _, err := conn.Conn().Prepare(ctx, name, sql); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %s: %w", name, err), t.abort())
		}
	}
	t.pipeline = conn.Conn().PgConn().StartPipeline(t.ctx)
	return t, nil
}

// isCurrent reports whether the connection still leads to the database that was accepted.
func (t *transaction) isCurrent() bool {
	accepted := t.store.accepted.Load()
	return !t.store.guarded.Load() || accepted != nil && *accepted == incarnationOf(t.conn)
}

// end returns the connection after a commit.
func (t *transaction) end() {
	t.limit.Stop()
	if t.pipeline != nil {
		_ = t.pipeline.Close() // a broken connection leaves the pool
	}
	t.conn.Release()
	t.cancel(nil)
}

// abort rolls back what is not committed, unless the broken connection has already done so, and
// returns the connection.
func (t *transaction) abort() error {
	var err error
	if t.pipeline != nil {
		_ = t.pipeline.Close() // the cause of the abort is already known
		t.pipeline = nil
	}
	if conn := t.conn.Conn(); !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err = conn.Exec(ctx, `rollback`); err != nil {
			err = fmt.Errorf("roll back: %w", err)
		}
	}
	t.end()
	return err
}

// explain adds the reason for the end of the transaction's context to an error that follows from it.
func (t *transaction) explain(err error) error {
	if err != nil && t.ctx.Err() != nil {
		return errors.Join(err, context.Cause(t.ctx))
	}
	return err
}

// send adds a statement to the next write. All parameters and results are in binary form.
func (t *transaction) send(name string, params ...[]byte) {
	t.pipeline.SendQueryPrepared(name, params, binaryFormat, binaryFormat)
}

var binaryFormat = []int16{1} // format codes of all parameters, or of all results

// requestLocks adds the BEGIN of a transaction and the locks of logs, in lockOrder.
func (t *transaction) requestLocks(parts []*part) {
	t.send("proofline_begin")
	rooms := newArray(pgtype.UUIDOID)
	for _, p := range parts {
		rooms.add(p.log.room[:])
	}
	t.send("proofline_lock", rooms.b)
	t.pipeline.SendPipelineSync()
}

// readLocks waits for the locks of parts, which are in lockOrder. A part whose log does not exist gets
// ErrNotFound.
func (t *transaction) readLocks(parts []*part) error {
	defer t.store.stalls.watch(t.conn.Conn().PgConn().PID())()
	if _, err := t.result(nil); err != nil {
		return err
	}
	rest := parts
	if _, err := t.result(func(row [][]byte) (err error) {
		for ; len(rest) > 0 && !bytes.Equal(rest[0].log.room[:], row[0]); rest = rest[1:] {
			rest[0].err = ErrNotFound
		}
		if len(rest) == 0 {
			return fmt.Errorf("%w: the heads are out of order", ErrCorrupt)
		}
		rest[0].head, err = parseHead(row[1:])
		rest = rest[1:]
		return err
	}); err != nil {
		return fmt.Errorf("read heads: %w", err)
	}
	for _, p := range rest {
		p.err = ErrNotFound
	}
	return t.synced()
}

// parseHead reads a row of proofline_lock.
func parseHead(row [][]byte) (h head, err error) {
	const integer = 8
	for i, size := range []int{integer, len(h.root), integer, integer, 1, integer} {
		if len(row) <= i || len(row[i]) != size {
			return h, fmt.Errorf("%w: the head has an unexpected form", ErrCorrupt)
		}
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(row[i])) } //nolint:gosec // two's complement
	h.size, h.root, h.time = uint64(number(0)), audit.Hash(row[1]), number(2)     //nolint:gosec // never negative
	h.published, h.held, h.now = epoch.Add(micros(number(3))), row[4][0] == 1, epoch.Add(micros(number(5)))
	return h, nil
}

// epoch is the zero of PostgreSQL's timestamps, which are in microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// query runs a query of this transaction before anything is stored. After an error of the connection
// there is no pipeline.
func (t *transaction) query(do func(ctx context.Context, conn *pgx.Conn) error) error {
	conn := t.conn.Conn()
	err := t.pipeline.Close()
	t.pipeline = nil
	if err == nil {
		err = do(t.ctx, conn)
	}
	if !conn.IsClosed() {
		t.pipeline = conn.PgConn().StartPipeline(t.ctx)
	}
	return err
}

// storeEntries adds the statements that store the batches of parts, and returns their number.
func (t *transaction) storeEntries(parts []*part) (sent int) {
	rooms, firsts, counts := newArray(pgtype.UUIDOID), newArray(pgtype.Int8OID), newArray(pgtype.Int4OID)
	entries := newArray(pgtype.ByteaOID)
	hashRooms, levels, indexes := newArray(pgtype.UUIDOID), newArray(pgtype.Int2OID), newArray(pgtype.Int8OID)
	hashes := newArray(pgtype.ByteaOID)
	for _, p := range parts {
		room := p.log.room[:]
		for row := range p.batch.rows(p.ext.Start()) {
			rooms.add(room)
			firsts.addInteger(row.first)
			counts.add(binary.BigEndian.AppendUint32(nil, row.count))
			entries.add(row.entries)
		}
		p.ext.TileRoots(func(level uint8, index uint64, h audit.Hash) {
			hashRooms.add(room)
			levels.add([]byte{0, level})
			indexes.addInteger(index)
			hashes.add(h[:])
		})
	}
	t.send("proofline_entries", rooms.b, firsts.b, counts.b, entries.b)
	sent = 1
	if hashes.count > 0 {
		t.send("proofline_hashes", hashRooms.b, levels.b, indexes.b, hashes.b)
		sent++
	}
	t.storeHeads(parts)
	return sent + 1
}

// storeHeads adds the statement that updates the heads of parts.
func (t *transaction) storeHeads(parts []*part) {
	rooms, sizes, roots := newArray(pgtype.UUIDOID), newArray(pgtype.Int8OID), newArray(pgtype.ByteaOID)
	times, checkpoints, publish := newArray(pgtype.Int8OID), newArray(pgtype.TextOID), newArray(pgtype.BoolOID)
	for _, p := range parts {
		root := p.ext.Root()
		rooms.add(p.log.room[:])
		sizes.addInteger(p.ext.Size())
		roots.add(root[:])
		times.addInteger(uint64(p.batch.Now)) //nolint:gosec // two's complement
		checkpoints.add(p.signed)
		publish.add([]byte{0})
		// The clock may have been set back.
		if p.batch.publish || p.head.now.Sub(p.head.published).Abs() >= publishInterval {
			publish.b[len(publish.b)-1] = 1
		}
	}
	t.send("proofline_heads", rooms.b, sizes.b, roots.b, times.b, checkpoints.b, publish.b)
}

// array is the binary form of a PostgreSQL array.
type array struct {
	b     []byte
	count uint32
}

// newArray returns an empty array of a type's elements.
func newArray(oid uint32) *array {
	const dimensions, nulls, lowerBound = 1, 0, 1
	a := &array{b: make([]byte, 0, 64)}
	for _, n := range []uint32{dimensions, nulls, oid, 0, lowerBound} {
		a.b = binary.BigEndian.AppendUint32(a.b, n)
	}
	return a
}

// add appends an element in its binary form.
func (a *array) add(element []byte) {
	const countAt = 12
	a.count++
	binary.BigEndian.PutUint32(a.b[countAt:], a.count)
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(element))) //nolint:gosec // at most a bundle
	a.b = append(a.b, element...)
}

// addInteger appends a bigint.
func (a *array) addInteger(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	a.add(b[:])
}

// requestCommit adds the commit.
func (t *transaction) requestCommit() {
	t.send("proofline_commit")
	t.pipeline.SendPipelineSync()
}

// readCommit waits until the entries of the parts, which sent statements store, are durable.
func (t *transaction) readCommit(parts []*part, sent int) error {
	for range sent {
		_, err := t.result(nil)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation && len(parts) == 1 {
			p := parts[0]
			p.err = fmt.Errorf("%w: it has entries from %d on, but the head ends there: %w", ErrCorrupt,
				p.ext.Start(), err)
		}
		if err != nil {
			return fmt.Errorf("store entries: %w", err)
		}
	}
	tag, err := t.result(nil)
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the answer is %s", tag)
	}
	if err = cmp.Or(err, t.synced()); err == nil {
		err = sure(t.conn.Conn())
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// result waits for the result of the next statement and passes its rows to read.
func (t *transaction) result(read func(row [][]byte) error) (pgconn.CommandTag, error) {
	results, err := t.pipeline.GetResults()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	reader, ok := results.(*pgconn.ResultReader)
	if !ok {
		return pgconn.CommandTag{}, fmt.Errorf("the database answers with %T", results)
	}
	for reader.NextRow() {
		if read != nil && err == nil {
			err = read(reader.Values())
		}
	}
	tag, errClose := reader.Close()
	return tag, cmp.Or(errClose, err)
}

// synced waits for the last result of one write.
func (t *transaction) synced() error {
	results, err := t.pipeline.GetResults()
	if _, ok := results.(*pgconn.PipelineSync); err == nil && !ok {
		err = fmt.Errorf("the database answers with %T", results)
	}
	return err
}

// lockOrder is the order in which transactions lock logs, so that they never wait for each other in
// a circle.
func lockOrder(a, b *part) int { return cmp.Compare(string(a.log.room[:]), string(b.log.room[:])) }
