package pglog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrUnsettled is returned while connections lead to a database other than the one accepted by
// [Store.Accept], which may lack committed data.
var ErrUnsettled = errors.New("the database was restored, restarted or replaced, and is being compared")

// Incarnation identifies one life of one database. A restart, a restored backup, a failover and a return to
// an old primary each start a new one; within one, a database loses nothing that it committed. The zero value
// belongs to a connection about which nothing is known.
type Incarnation struct {
	System   int64  // system identifier of the cluster, which its copies share
	Timeline int64  // increases with each promotion and each recovery from an archive
	Life     string // start time of the process, and ids of database and tables
}

// String returns the incarnation as log_nodes stores it.
func (i Incarnation) String() string {
	return strconv.FormatInt(i.System, 10) + " " + strconv.FormatInt(i.Timeline, 10) + " " + i.Life
}

// IsBehind reports whether i is an older primary of the same cluster.
func (i Incarnation) IsBehind(other Incarnation) bool {
	return i.System == other.System && i.Timeline < other.Timeline
}

const (
	lifeQuery = `concat_ws(' ', extract(epoch from pg_postmaster_start_time()),
		(select oid from pg_database where datname = current_database()), to_regclass('log_heads')::oid)`
	incarnationQuery = `select system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint, ` +
		lifeQuery + ` from pg_control_system()`
)

// incarnationKey and unsureKey are the keys of the data attached to connections.
const (
	incarnationKey = "proofline incarnation"
	unsureKey      = "proofline unsure"
)

// identify attaches the database's incarnation to a new connection. Some hosted databases do not reveal
// system and timeline; these are identified by their life only.
func identify(ctx context.Context, conn *pgx.Conn) error {
	var i Incarnation
	err := conn.QueryRow(ctx, incarnationQuery).Scan(&i.System, &i.Timeline, &i.Life)
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		i = Incarnation{}
		err = conn.QueryRow(ctx, `select `+lifeQuery).Scan(&i.Life)
	}
	if err != nil {
		return fmt.Errorf("identify database: %w", err)
	}
	conn.PgConn().CustomData()[incarnationKey] = i
	return nil
}

func incarnationOf(conn *pgxpool.Conn) Incarnation {
	i, _ := conn.Conn().PgConn().CustomData()[incarnationKey].(Incarnation)
	return i
}

// noticeUnsure records that a commit of the connection gave up waiting for a synchronous standby: PostgreSQL
// keeps such a commit, reports success, and may lose it at a failover. It checks the name of the routine,
// because the text of the warning is translated.
func noticeUnsure(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unsureKey] = true
	}
}

// sure returns [ErrUnconfirmed] if, since the last call, a commit of the connection was kept without its
// standby.
func sure(conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	if data[unsureKey] == nil {
		return nil
	}
	delete(data, unsureKey)
	return ErrUnconfirmed
}

// Guard makes the store refuse appends until [Store.Accept] is called, and whenever connections lead to an
// incarnation other than the accepted one.
func (s *Store) Guard() { s.guarded.Store(true) }

// Accept allows appends in an incarnation, and closes connections to others.
func (s *Store) Accept(i Incarnation) {
	was := s.accepted.Swap(&i)
	if was == nil {
		close(s.begun)
	}
	if was == nil || *was != i {
		s.pool.Reset()
	}
}

// await waits until the first incarnation is accepted, as at the start of a server.
func (s *Store) await(ctx context.Context) error {
	if !s.guarded.Load() || s.accepted.Load() != nil {
		return nil
	}
	select {
	case <-s.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(appendTimeout):
		return ErrUnsettled
	}
}

// Accepted returns the incarnation accepted last, if any.
func (s *Store) Accepted() (Incarnation, bool) {
	if i := s.accepted.Load(); i != nil {
		return *i, true
	}
	return Incarnation{}, false
}

// access is the purpose of a connection.
type access int

const (
	toRead access = iota
	toAppend
)

// acquire returns a connection to the accepted incarnation. Before the first one is accepted, a log can be
// read but not appended to.
func (s *Store) acquire(ctx context.Context, purpose access) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil || !s.guarded.Load() {
		return conn, err
	}
	accepted, is := s.accepted.Load(), incarnationOf(conn)
	if accepted == nil && purpose == toRead || accepted != nil && *accepted == is || is == (Incarnation{}) {
		return conn, nil
	}
	conn.Release()
	return nil, ErrUnsettled
}

// Acquire returns a connection to the accepted incarnation, which loses nothing that was committed there.
// Errors: [ErrUnsettled], and those of the pool.
func (s *Store) Acquire(ctx context.Context) (*pgxpool.Conn, error) { return s.acquire(ctx, toAppend) }

// Incarnation returns the incarnation that connections lead to now.
func (s *Store) Incarnation(ctx context.Context) (Incarnation, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return Incarnation{}, fmt.Errorf("identify database: %w", err)
	}
	defer conn.Release()
	if err := conn.Ping(ctx); err != nil { // the connection may belong to a server that is gone
		return Incarnation{}, fmt.Errorf("identify database: %w", err)
	}
	return incarnationOf(conn), nil
}

// Peers describes the other servers of the database.
type Peers struct {
	Known   bool        // the database has this server's record
	Settled bool        // one of them already appends in this incarnation
	Silent  []uuid.UUID // servers that have not compared this incarnation
}

// Compared records that a node has compared an incarnation with all its marks, and returns the state of the
// others.
func (s *Store) Compared(ctx context.Context, node uuid.UUID, i Incarnation) (p Peers, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select exists (select from log_nodes where node_id = $1)`,
		node).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Known) })
	batch.Queue(`insert into log_nodes (node_id, compared) values ($1, $2)
		on conflict (node_id) do update set compared = excluded.compared, settled = false where log_nodes.compared <> excluded.compared`, node, i.String())
	batch.Queue(`select coalesce(bool_or(settled and compared = $2), false), coalesce(array_agg(node_id) filter (where compared <> $2), '{}')
		from log_nodes where node_id <> $1`, node, i.String()).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Settled, &p.Silent) })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return p, fmt.Errorf("compare database: %w", err)
	}
	return p, nil
}

// Settle records that a node appends, and no longer waits for silent nodes.
func (s *Store) Settle(ctx context.Context, node uuid.UUID, silent []uuid.UUID) error {
	batch := &pgx.Batch{}
	batch.Queue(`update log_nodes set settled = true where node_id = $1`, node)
	batch.Queue(`delete from log_nodes where node_id = any($1::uuid[])`, uuid.UUIDs(silent).Strings())
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("settle on database: %w", err)
	}
	return nil
}

// Leave records that a node has stopped, so that others do not wait for it.
func (s *Store) Leave(ctx context.Context, node uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `delete from log_nodes where node_id = $1`, node); err != nil {
		return fmt.Errorf("leave database: %w", err)
	}
	return nil
}

// confirmTimeout limits how long a commit waits for a synchronous standby. PostgreSQL keeps a commit that
// gives up, so the room would not continue sooner with a shorter limit.
const confirmTimeout = time.Minute

func (s *Store) commitTimeout() time.Duration {
	if s.synchronous.Load() {
		return confirmTimeout
	}
	return appendTimeout
}

// Confirm waits until everything that was read before the call is as durable as a commit made now. A node's own
// commits are; what it reads may come from a commit that gave up waiting for a standby. Without synchronous
// standbys it does not wait.
func (s *Store) Confirm(ctx context.Context) error {
	if !s.synchronous.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("confirm entries: %w", err)
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, `select pg_logical_emit_message(true, 'proofline', '')`) // a commit that changes nothing
	if err = errors.Join(err, sure(conn.Conn())); err != nil {
		return fmt.Errorf("confirm entries: %w", err)
	}
	return nil
}
