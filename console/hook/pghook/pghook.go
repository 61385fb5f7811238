// Package pghook keeps webhooks and alerts in PostgreSQL: endpoints, who is
// alerted of what, how far transcripts were followed, and the outbox with its
// log. It is the only package that knows the tables of
// migrations/0009_hooks.sql.
//
// A delivery is waiting until it is delivered or given up. Nodes share the
// outbox: [Store.Take] leases what is due, and what a node that died had taken
// is due again when the lease is over.
package pghook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound is returned when the organization has no such endpoint or
	// delivery.
	ErrNotFound = errors.New("no such endpoint or delivery")
	// ErrTooMany is returned when an organization has as many endpoints as it
	// may.
	ErrTooMany = errors.New("too many endpoints")
)

// Store reads and writes what hooks need. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Endpoint is one row of the endpoints.
type Endpoint struct {
	Org          uuid.UUID
	ID           uuid.UUID
	URL          string
	Events       []string // names; none for all
	Rooms        []string // slugs; none for all
	Description  string
	Secret       []byte // sealed
	Former       []byte // sealed; nil without a rotation
	FormerUntil  *time.Time
	Disabled     string // why; "" for enabled
	Created      time.Time
	Since        time.Time // hears of what happens from then on
	Failures     int       // attempts since the latest that succeeded
	FailingSince *time.Time
}

const endpointColumns = `org_id, endpoint_id, url, events, rooms, description, secret, former_secret, former_until, disabled, created_at, since, failures, failing_since`

// forgetCursors removes the cursors of an organization that nobody listened
// to: what happened meanwhile is not told.
const forgetCursors = `delete from hook_cursors where org_id = $1
	and not exists (select from hook_endpoints where org_id = $1 and disabled = '')
	and not exists (select from hook_alerts where org_id = $1 and cardinality(emails) + cardinality(endpoints) > 0)`

// InsertEndpoint stores a new endpoint; [ErrTooMany] when the organization has
// so many already.
func (s *Store) InsertEndpoint(ctx context.Context, e Endpoint, most int) error {
	return s.write(ctx, "insert endpoint", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('proofline hooks of ' || $1::text, 0))`, e.Org); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from hook_endpoints where org_id = $1`, e.Org).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return ErrTooMany
		}
		if _, err := tx.Exec(ctx, forgetCursors, e.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into hook_endpoints (`+endpointColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			e.Org, e.ID, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled, e.Created, e.Since, e.Failures, e.FailingSince)
		return err
	})
}

// UpdateEndpoint reads an endpoint, lets change alter it, and stores it, with
// nobody else in between. Errors: [ErrNotFound], and that of change. What waits
// for one that is disabled is given up.
func (s *Store) UpdateEndpoint(ctx context.Context, org, id uuid.UUID, change func(*Endpoint) error) (e Endpoint, err error) {
	err = s.write(ctx, "update endpoint", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `select `+endpointColumns+` from hook_endpoints where org_id = $1 and endpoint_id = $2 for update`, org, id)
		if e, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Endpoint]); err != nil {
			return found(err)
		}
		was := e.Disabled
		if err := change(&e); err != nil {
			return err
		}
		if was != "" && e.Disabled == "" {
			if _, err := tx.Exec(ctx, forgetCursors, org); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `update hook_endpoints set url = $3, events = $4, rooms = $5, description = $6, secret = $7, former_secret = $8,
			former_until = $9, disabled = $10, since = $11, failures = $12, failing_since = $13 where org_id = $1 and endpoint_id = $2`,
			org, id, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled, e.Since, e.Failures, e.FailingSince)
		if err != nil || e.Disabled == "" {
			return err
		}
		return giveUp(ctx, tx, org, id)
	})
	return e, err
}

// giveUp ends what waits for an endpoint.
func giveUp(ctx context.Context, tx pgx.Tx, org, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `update hook_deliveries set state = 'failed', due_at = null, leased_until = null
		where org_id = $1 and target = $2 and due_at is not null`, org, id)
	return err
}

// DeleteEndpoint removes an endpoint, also from the alerts; [ErrNotFound].
// What waits for it is given up, and the log stays.
func (s *Store) DeleteEndpoint(ctx context.Context, org, id uuid.UUID) error {
	return s.write(ctx, "delete endpoint", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from hook_endpoints where org_id = $1 and endpoint_id = $2`, org, id)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		if err == nil {
			_, err = tx.Exec(ctx, `update hook_alerts set endpoints = array_remove(endpoints, $2) where org_id = $1`, org, id)
		}
		if err != nil {
			return err
		}
		return giveUp(ctx, tx, org, id)
	})
}

// Endpoints returns the endpoints of an organization, oldest first.
func (s *Store) Endpoints(ctx context.Context, org uuid.UUID) ([]Endpoint, error) {
	return s.endpoints(ctx, `where org_id = $1 order by created_at, endpoint_id`, org)
}

// Endpoint returns one endpoint; [ErrNotFound].
func (s *Store) Endpoint(ctx context.Context, org, id uuid.UUID) (Endpoint, error) {
	list, err := s.endpoints(ctx, `where org_id = $1 and endpoint_id = $2`, org, id)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Endpoint{}, err
	}
	return list[0], nil
}

// Enabled returns the endpoints of all organizations that are enabled.
func (s *Store) Enabled(ctx context.Context) ([]Endpoint, error) {
	return s.endpoints(ctx, `where disabled = '' order by org_id, created_at, endpoint_id`)
}

func (s *Store) endpoints(ctx context.Context, where string, args ...any) ([]Endpoint, error) {
	rows, _ := s.pool.Query(ctx, `select `+endpointColumns+` from hook_endpoints `+where, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Endpoint])
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return list, nil
}

// Alerts is who in an organization is told of what.
type Alerts struct {
	Org       uuid.UUID
	Emails    []string
	Endpoints []uuid.UUID
	Kinds     []string
	NoShows   int // percent
	Since     time.Time
}

const alertColumns = `org_id, emails, endpoints, kinds, no_shows, since`

// Alerts returns who is told in an organization; [ErrNotFound] for nobody.
func (s *Store) Alerts(ctx context.Context, org uuid.UUID) (Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from hook_alerts where org_id = $1`, org)
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return Alerts{}, fmt.Errorf("read alerts: %w", found(err))
	}
	return a, nil
}

// AllAlerts returns who is told, of all organizations.
func (s *Store) AllAlerts(ctx context.Context) ([]Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from hook_alerts`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return list, nil
}

// SetAlerts stores who is told. Since stays as it was when somebody was told
// before.
func (s *Store) SetAlerts(ctx context.Context, a Alerts) error {
	return s.write(ctx, "set alerts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, forgetCursors, a.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into hook_alerts (`+alertColumns+`) values ($1, $2, $3, $4, $5, $6)
			on conflict (org_id) do update set emails = $2, endpoints = $3, kinds = $4, no_shows = $5,
			since = case when cardinality(hook_alerts.emails) + cardinality(hook_alerts.endpoints) > 0 then hook_alerts.since else $6 end`,
			a.Org, a.Emails, a.Endpoints, a.Kinds, a.NoShows, a.Since)
		return err
	})
}

// DeleteAlerts has nobody told any more.
func (s *Store) DeleteAlerts(ctx context.Context, org uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `delete from hook_alerts where org_id = $1`, org); err != nil {
		return fmt.Errorf("delete alerts: %w", err)
	}
	return nil
}

// write runs a transaction.
func (s *Store) write(ctx context.Context, what string, do func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, s.pool, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// found maps the error of a row that is not there.
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
