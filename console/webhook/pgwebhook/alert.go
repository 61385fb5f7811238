package pgwebhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Alerts holds the alert settings of an organization.
type Alerts struct {
	Org       uuid.UUID
	Emails    []string
	Endpoints []uuid.UUID
	Kinds     []string
	NoShows   int // percent
	Since     time.Time
}

// AlertSettings stores alert settings, in the table alert_settings.
type AlertSettings struct{ pool *pgxpool.Pool }

const alertColumns = `org_id, emails, endpoints, kinds, no_shows, since`

// Get returns the alert settings of an organization, or [ErrNotFound].
func (s *AlertSettings) Get(ctx context.Context, org uuid.UUID) (Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from alert_settings where org_id = $1`, org)
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return Alerts{}, fmt.Errorf("read alerts: %w", found(err))
	}
	return a, nil
}

// List returns the alert settings of all organizations.
func (s *AlertSettings) List(ctx context.Context) ([]Alerts, error) {
	rows, _ := s.pool.Query(ctx, `select `+alertColumns+` from alert_settings`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Alerts])
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	return list, nil
}

// Set stores alert settings. Since keeps its value if there were recipients before.
func (s *AlertSettings) Set(ctx context.Context, a Alerts) error {
	return write(ctx, s.pool, "set alerts", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, forgetCursors, a.Org); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into alert_settings (`+alertColumns+`) values ($1, $2, $3, $4, $5, $6)
			on conflict (org_id) do update set emails = $2, endpoints = $3, kinds = $4, no_shows = $5,
			since = case when cardinality(alert_settings.emails) + cardinality(alert_settings.endpoints) > 0
				then alert_settings.since else $6 end`,
			a.Org, a.Emails, a.Endpoints, a.Kinds, a.NoShows, a.Since)
		return err
	})
}

// Delete deletes an organization's alert settings.
func (s *AlertSettings) Delete(ctx context.Context, org uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `delete from alert_settings where org_id = $1`, org); err != nil {
		return fmt.Errorf("delete alerts: %w", err)
	}
	return nil
}
