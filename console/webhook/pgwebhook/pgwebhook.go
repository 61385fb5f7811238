// Package pgwebhook stores webhooks and alerts in PostgreSQL: endpoints, alert settings, cursors into
// transcripts, and the outbox with its log. Only this package accesses the tables of
// migrations/0009_webhooks.sql.
//
// A delivery waits until it is delivered or given up. Nodes share the outbox: [Store.Take] leases
// due deliveries, and those of a node that died become due again when the lease ends.
package pgwebhook

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
	// ErrNotFound is returned when the organization has no such endpoint or delivery.
	ErrNotFound = errors.New("no such endpoint or delivery")
	// ErrTooMany is returned when an organization has reached the limit of endpoints.
	ErrTooMany = errors.New("too many endpoints")
)

// Store reads and writes. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Endpoint is one row of webhook_endpoints.
type Endpoint struct {
	Org          uuid.UUID
	ID           uuid.UUID
	URL          string
	Events       []string // names; empty: all
	Rooms        []string // slugs; empty: all
	Description  string
	Secret       []byte // sealed
	Former       []byte // sealed; nil: no rotation
	FormerUntil  *time.Time
	Disabled     string // reason; "": enabled
	Created      time.Time
	Since        time.Time // gets events from this time on
	Failures     int       // attempts since the last success
	FailingSince *time.Time
}

const endpointColumns = `org_id, endpoint_id, url, events, rooms, description, secret, former_secret, former_until, disabled, created_at, since, failures, failing_since`

// forgetCursors deletes the cursors of an organization without endpoints and alert recipients, so
// that events from that time are not sent later.
const forgetCursors = `delete from transcript_cursors where org_id = $1
	and not exists (select from webhook_endpoints where org_id = $1 and disabled = '')
	and not exists (select from alert_settings where org_id = $1 and cardinality(emails) + cardinality(endpoints) > 0)`

// InsertEndpoint stores a new endpoint, or returns [ErrTooMany] if the organization already has
// limit endpoints.
func (s *Store) InsertEndpoint(ctx context.Context, e Endpoint, limit int) error {
	return s.write(ctx, "insert endpoint", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('proofline webhooks of ' || $1::text, 0))`, e.Org); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from webhook_endpoints where org_id = $1`,
			e.Org).Scan(&n); err != nil {
			return err
		}
		if n >= limit {
			return ErrTooMany
		}
		if _, err := tx.Exec(ctx, forgetCursors, e.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into webhook_endpoints (`+endpointColumns+
			`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			e.Org, e.ID, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled, e.Created, e.Since, e.Failures, e.FailingSince)
		return err
	})
}

// UpdateEndpoint reads an endpoint, lets change modify it and stores it, under a lock. If change
// disables it, its waiting deliveries are given up. It returns [ErrNotFound] or the error of
// change.
func (s *Store) UpdateEndpoint(ctx context.Context, org, id uuid.UUID,
	change func(*Endpoint) error) (e Endpoint, err error) {
	err = s.write(ctx, "update endpoint", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `select `+endpointColumns+
			` from webhook_endpoints where org_id = $1 and endpoint_id = $2 for update`, org, id)
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
		_, err := tx.Exec(ctx, `update webhook_endpoints
			set url = $3, events = $4, rooms = $5, description = $6, secret = $7, former_secret = $8,
			former_until = $9, disabled = $10, since = $11, failures = $12, failing_since = $13 where org_id = $1
			and endpoint_id = $2`,
			org, id, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled, e.Since, e.Failures, e.FailingSince)
		if err != nil || e.Disabled == "" {
			return err
		}
		return giveUp(ctx, tx, org, id)
	})
	return e, err
}

// giveUp gives up an endpoint's waiting deliveries.
func giveUp(ctx context.Context, tx pgx.Tx, org, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `update deliveries set state = 'failed', due_at = null, leased_until = null
		where org_id = $1 and target = $2 and due_at is not null`, org, id)
	return err
}

// DeleteEndpoint deletes an endpoint, also from the alert settings, and gives up its waiting
// deliveries. The log stays. It returns [ErrNotFound].
func (s *Store) DeleteEndpoint(ctx context.Context, org, id uuid.UUID) error {
	return s.write(ctx, "delete endpoint", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from webhook_endpoints where org_id = $1 and endpoint_id = $2`, org, id)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		if err == nil {
			_, err = tx.Exec(ctx, `update alert_settings set endpoints = array_remove(endpoints, $2) where org_id = $1`,
				org, id)
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

// Endpoint returns one endpoint, or [ErrNotFound].
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

// Enabled returns the enabled endpoints of all organizations.
func (s *Store) Enabled(ctx context.Context) ([]Endpoint, error) {
	return s.endpoints(ctx, `where disabled = '' order by org_id, created_at, endpoint_id`)
}

func (s *Store) endpoints(ctx context.Context, where string, args ...any) ([]Endpoint, error) {
	rows, _ := s.pool.Query(ctx, `select `+endpointColumns+` from webhook_endpoints `+where, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Endpoint])
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return list, nil
}

// Alerts holds the alert settings of an organization.
type Alerts struct {
	Org       uuid.UUID
	Emails    []string
	Endpoints []uuid.UUID
	Kinds     []string
	NoShows   int // percent
	Since     time.Time
}

const alertColumns = `org_id, emails, endpoints, kinds, no_shows, since`

// Alerts returns the alert settings of an organization, or [ErrNotFound].
func (s *Store) Alerts(ctx context.Context, org uuid.UUID) (Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from alert_settings where org_id = $1`, org)
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return Alerts{}, fmt.Errorf("read alerts: %w", found(err))
	}
	return a, nil
}

// AllAlerts returns the alert settings of all organizations.
func (s *Store) AllAlerts(ctx context.Context) ([]Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from alert_settings`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return list, nil
}

// SetAlerts stores alert settings. Since keeps its value if there already were recipients.
func (s *Store) SetAlerts(ctx context.Context, a Alerts) error {
	return s.write(ctx, "set alerts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, forgetCursors, a.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into alert_settings (`+alertColumns+`) values ($1, $2, $3, $4, $5, $6)
			on conflict (org_id) do update set emails = $2, endpoints = $3, kinds = $4, no_shows = $5,
			since = case when cardinality(alert_settings.emails) + cardinality(alert_settings.endpoints) > 0 then alert_settings.since else $6 end`,
			a.Org, a.Emails, a.Endpoints, a.Kinds, a.NoShows, a.Since)
		return err
	})
}

// DeleteAlerts deletes an organization's alert settings.
func (s *Store) DeleteAlerts(ctx context.Context, org uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `delete from alert_settings where org_id = $1`, org); err != nil {
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

// found maps pgx.ErrNoRows to [ErrNotFound].
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
