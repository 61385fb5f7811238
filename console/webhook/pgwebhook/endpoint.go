package pgwebhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

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

// Endpoints stores endpoints, in the table webhook_endpoints.
type Endpoints struct{ pool *pgxpool.Pool }

const endpointColumns = `org_id, endpoint_id, url, events, rooms, description, secret, former_secret, former_until,
	disabled, created_at, since, failures, failing_since`

// forgetCursors deletes the cursors of an organization without endpoints and alert recipients, so
// that events of the time without any are not sent later.
const forgetCursors = `delete from transcript_cursors where org_id = $1
	and not exists (select from webhook_endpoints where org_id = $1 and disabled = '')
	and not exists (select from alert_settings where org_id = $1 and cardinality(emails) + cardinality(endpoints) > 0)`

// Insert stores a new endpoint, or returns [ErrTooManyEndpoints] if the organization already has
// limit endpoints.
func (s *Endpoints) Insert(ctx context.Context, e Endpoint, limit int) error {
	return write(ctx, s.pool, "insert endpoint", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('proofline webhooks of ' || $1::text, 0))`,
			e.Org); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from webhook_endpoints where org_id = $1`,
			e.Org).Scan(&n); err != nil {
			return err
		}
		if n >= limit {
			return ErrTooManyEndpoints
		}
		if _, err := tx.Exec(ctx, forgetCursors, e.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into webhook_endpoints (`+endpointColumns+
			`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			e.Org, e.ID, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled,
			e.Created, e.Since, e.Failures, e.FailingSince)
		return err
	})
}

// Update reads an endpoint, lets change modify it and stores it, under a lock. If change
// disables it, its waiting deliveries are given up. It returns [ErrNotFound] or the error of
// change.
func (s *Endpoints) Update(ctx context.Context, org, id uuid.UUID,
	change func(*Endpoint) error) (e Endpoint, err error) {
	err = write(ctx, s.pool, "update endpoint", func(tx pgx.Tx) error {
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
			org, id, e.URL, e.Events, e.Rooms, e.Description, e.Secret, e.Former, e.FormerUntil, e.Disabled,
			e.Since, e.Failures, e.FailingSince)
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

// Delete deletes an endpoint, removes it from the alert settings, and gives up its waiting
// deliveries. The log stays. It returns [ErrNotFound].
func (s *Endpoints) Delete(ctx context.Context, org, id uuid.UUID) error {
	return write(ctx, s.pool, "delete endpoint", func(tx pgx.Tx) error {
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

// List returns the endpoints of an organization, oldest first.
func (s *Endpoints) List(ctx context.Context, org uuid.UUID) ([]Endpoint, error) {
	return s.selected(ctx, `where org_id = $1 order by created_at, endpoint_id`, org)
}

// Get returns one endpoint, or [ErrNotFound].
func (s *Endpoints) Get(ctx context.Context, org, id uuid.UUID) (Endpoint, error) {
	list, err := s.selected(ctx, `where org_id = $1 and endpoint_id = $2`, org, id)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Endpoint{}, err
	}
	return list[0], nil
}

// Enabled returns the enabled endpoints of all organizations.
func (s *Endpoints) Enabled(ctx context.Context) ([]Endpoint, error) {
	return s.selected(ctx, `where disabled = '' order by org_id, created_at, endpoint_id`)
}

// Overfull returns the enabled endpoints with more than limit waiting deliveries.
func (s *Endpoints) Overfull(ctx context.Context, limit int) ([]Endpoint, error) {
	return s.selected(ctx, `e where disabled = '' and (select count(*) from (
		select from deliveries d where d.org_id = e.org_id and d.target = e.endpoint_id
		and d.due_at is not null limit $1) as waiting) >= $1`, limit+1)
}

func (s *Endpoints) selected(ctx context.Context, where string, args ...any) ([]Endpoint, error) {
	rows, _ := s.pool.Query(ctx, `select `+endpointColumns+` from webhook_endpoints `+where, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Endpoint])
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return list, nil
}
