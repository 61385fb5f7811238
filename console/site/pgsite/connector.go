package pgsite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Connector is a connector process and its latest report.
type Connector struct {
	Node         string
	Site         string // empty: its rules belong to no site
	RulesVersion uint64
	Kind         string
	Version      string
	Counts       map[string]uint64
	Seen         time.Time
	// Set only when read:
	IsRecent bool // reported within the time given to [Store.Connectors]
	IsBehind bool // runs older rules than the current ones
}

// Seen records a report from a connector. It writes nothing if the connector's description is
// unchanged and the last write is less than minInterval ago, because connectors report every
// second. A new connector gets [ErrTooManyConnectors] if the organization already has max of them.
func (s *Store) Seen(ctx context.Context, org uuid.UUID, c Connector, minInterval time.Duration, max int) error {
	var known, fresh bool
	err := s.pool.QueryRow(ctx, `
		select true, site = $3 and rules_version = $4 and kind = $5 and version = $6 and seen_at > clock_timestamp() - $7::interval
		from connectors where org_id = $1 and node = $2`, org, c.Node, c.Site, c.RulesVersion, c.Kind, c.Version, minInterval).Scan(&known, &fresh)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("look for connector: %w", err)
	}
	if fresh {
		return nil
	}
	tag, err := s.pool.Exec(ctx, `
		insert into connectors as k (org_id, node, site, rules_version, kind, version, counts, seen_at)
		select $1, $2, $3, $4, $5, $6, $7, clock_timestamp()
		where $8 or (select count(*) from connectors where org_id = $1) < $9
		on conflict (org_id, node) do update set site = $3, rules_version = $4, kind = $5, version = $6, counts = $7, seen_at = clock_timestamp()`,
		org, c.Node, c.Site, c.RulesVersion, c.Kind, c.Version, c.Counts, known, max)
	if err != nil {
		return fmt.Errorf("note connector: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrTooManyConnectors
	}
	return nil
}

// Connectors returns the connectors of a site, latest report first. IsRecent is set on those that
// reported within the given time.
func (s *Store) Connectors(ctx context.Context, org uuid.UUID, site string, within time.Duration) ([]Connector, error) {
	return s.connectors(ctx, org, &site, within)
}

// AllConnectors returns all connectors of an organization, like [Store.Connectors].
func (s *Store) AllConnectors(ctx context.Context, org uuid.UUID, within time.Duration) ([]Connector, error) {
	return s.connectors(ctx, org, nil, within)
}

func (s *Store) connectors(ctx context.Context, org uuid.UUID, site *string,
	within time.Duration) ([]Connector, error) {
	rows, _ := s.pool.Query(ctx, `
		select k.node, k.site, k.rules_version, k.kind, k.version, k.counts, k.seen_at,
		  k.seen_at > clock_timestamp() - $3::interval, coalesce(k.rules_version < s.version, false)
		from connectors k left join sites s on s.org_id = k.org_id and s.site = k.site and s.deleted_at is null
		where k.org_id = $1 and ($2::text is null or k.site = $2)
		order by k.seen_at desc, k.node`, org, site, within) // rows reports the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Connector])
	if err != nil {
		return nil, fmt.Errorf("list connectors: %w", err)
	}
	return list, nil
}

// ForgetConnectors deletes connectors whose latest report is older than the given time.
func (s *Store) ForgetConnectors(ctx context.Context, after time.Duration) error {
	if _, err := s.pool.Exec(ctx, `delete from connectors where seen_at < clock_timestamp() - $1::interval`,
		after); err != nil {
		return fmt.Errorf("forget connectors: %w", err)
	}
	return nil
}
