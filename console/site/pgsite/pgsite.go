// Package pgsite stores sites, their rules and their connectors in PostgreSQL. Only this package uses
// the tables of migrations/0011_sites.sql.
package pgsite

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
	// ErrNotFound means that the site, version or key does not exist.
	ErrNotFound = errors.New("no such site")
	// ErrExists means that the organization already has a site of this name.
	ErrExists = errors.New("a site of this name exists")
	// ErrChanged means that the site has changed since the caller read it.
	ErrChanged = errors.New("the site was changed in the meantime")
	// ErrTooManySites means that the organization has reached the limit of sites.
	ErrTooManySites = errors.New("too many sites")
	// ErrTooManyNames means that the organization has reached the limit of site names.
	ErrTooManyNames = errors.New("too many names of sites")
	// ErrTooManyConnectors means that the organization has reached the limit of connectors.
	ErrTooManyConnectors = errors.New("too many connectors")
)

// Store reads and writes sites. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Site is a site with one version of its rules.
type Site struct {
	Name    string
	Version uint64
	Hosts   []string // hosts in the current rules
	Rooms   []string // rooms in the current rules
	Changed time.Time
	By      string
	Rules   string
}

// Listed is a site in a list. Its Rules are empty.
type Listed struct {
	Site
	Connectors int // number of connectors that reported recently
	Behind     int // how many of Connectors run older rules
}

// Sites returns the sites of an organization, sorted by name. Connectors counts those that reported
// within the given time.
func (s *Store) Sites(ctx context.Context, org uuid.UUID, within time.Duration) ([]Listed, error) {
	rows, _ := s.pool.Query(ctx, `
		select s.site, s.version, s.hosts, s.rooms, v.changed_at, v.changed_by, '',
		  count(k.node), count(k.node) filter (where k.rules_version < s.version)
		from sites s
		join site_versions v on v.org_id = s.org_id and v.site = s.site and v.version = s.version
		left join connectors k on k.org_id = s.org_id and k.site = s.site and k.seen_at > clock_timestamp() - $2::interval
		where s.org_id = $1 and s.deleted_at is null
		group by s.org_id, s.site, v.changed_at, v.changed_by
		order by s.site`, org, within) // rows reports the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Listed])
	if err != nil {
		return nil, fmt.Errorf("list sites: %w", err)
	}
	return list, nil
}

const siteColumns = `s.site, v.version, s.hosts, s.rooms, v.changed_at, v.changed_by, v.rules
	from sites s join site_versions v on v.org_id = s.org_id and v.site = s.site
	where s.org_id = $1 and s.site = $2 and s.deleted_at is null`

// Site returns a site with its current rules, or [ErrNotFound].
func (s *Store) Site(ctx context.Context, org uuid.UUID, name string) (Site, error) {
	return one(s.pool.Query(ctx, `select `+siteColumns+` and v.version = s.version`, org, name))
}

// Version returns a site with the rules of the given version, or [ErrNotFound].
func (s *Store) Version(ctx context.Context, org uuid.UUID, name string, version uint64) (Site, error) {
	return one(s.pool.Query(ctx, `select `+siteColumns+` and v.version = $3`, org, name, version))
}

func one(rows pgx.Rows, _ error) (Site, error) { // rows reports the error
	site, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Site])
	if errors.Is(err, pgx.ErrNoRows) {
		return Site{}, ErrNotFound
	}
	if err != nil {
		return Site{}, fmt.Errorf("read site: %w", err)
	}
	return site, nil
}

// CurrentVersion returns the version of the current rules, or [ErrNotFound].
func (s *Store) CurrentVersion(ctx context.Context, org uuid.UUID, name string) (uint64, error) {
	return currentVersion(ctx, s.pool, org, name)
}

// querier is implemented by pools and transactions.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func currentVersion(ctx context.Context, q querier, org uuid.UUID, name string) (version uint64, err error) {
	err = q.QueryRow(ctx, `select version from sites where org_id = $1 and site = $2 and deleted_at is null`, org,
		name).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("read version: %w", err)
	}
	return version, nil
}

// Change is a new version of a site.
type Change struct {
	Name, Rules  string
	Hosts, Rooms []string
	By           string
}

// Add adds a site. MaxSites limits existing sites; maxNames also counts deleted ones.
// Errors: [ErrExists], [ErrTooManySites], [ErrTooManyNames].
func (s *Store) Add(ctx context.Context, org uuid.UUID, c Change, maxSites, maxNames int) (Site, error) {
	var out Site
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var version uint64
		err := tx.QueryRow(ctx, `
			insert into sites (org_id, site, version, hosts, rooms)
			select $1, $2, 1, $3, $4
			where (select count(*) filter (where deleted_at is null) < $5 and count(*) filter (where site <> $2) < $6 from sites where org_id = $1)
			on conflict (org_id, site) do update set version = sites.version + 1, hosts = $3, rooms = $4, deleted_at = null
			where sites.deleted_at is not null
			returning version`, org, c.Name, c.Hosts, c.Rooms, maxSites, maxNames).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err := currentVersion(ctx, tx, org, c.Name)
			if err == nil {
				return ErrExists
			}
			if errors.Is(err, ErrNotFound) {
				return limitReached(ctx, tx, org, maxSites)
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("add site: %w", err)
		}
		out, err = keep(ctx, tx, org, version, c)
		return err
	})
	return out, err //nolint:wrapcheck // already wrapped in the function
}

// limitReached returns which limit kept a site from being added.
func limitReached(ctx context.Context, tx pgx.Tx, org uuid.UUID, maxSites int) error {
	var count int
	if err := tx.QueryRow(ctx, `select count(*) from sites where org_id = $1 and deleted_at is null`,
		org).Scan(&count); err != nil {
		return fmt.Errorf("count sites: %w", err)
	}
	if count >= maxSites {
		return ErrTooManySites
	}
	return ErrTooManyNames
}

// keep stores the rules of one version.
func keep(ctx context.Context, tx pgx.Tx, org uuid.UUID, version uint64, c Change) (Site, error) {
	out := Site{Name: c.Name, Version: version, Hosts: c.Hosts, Rooms: c.Rooms, By: c.By, Rules: c.Rules}
	err := tx.QueryRow(ctx, `insert into site_versions (org_id, site, version, rules, changed_by) values ($1, $2, $3, $4, $5) returning changed_at`,
		org, c.Name, version, c.Rules, c.By).Scan(&out.Changed)
	if err != nil {
		return Site{}, fmt.Errorf("keep rules: %w", err)
	}
	return out, nil
}

// Change stores new rules for a site and keeps the latest versions of them. A version other than 0
// must be that of the current rules. Errors: [ErrNotFound], [ErrChanged].
func (s *Store) Change(ctx context.Context, org uuid.UUID, version uint64, c Change, versions int) (Site, error) {
	var out Site
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var next uint64
		err := tx.QueryRow(ctx, `
			update sites set version = version + 1, hosts = $3, rooms = $4
			where org_id = $1 and site = $2 and deleted_at is null and ($5 = 0 or version = $5)
			returning version`, org, c.Name, c.Hosts, c.Rooms, version).Scan(&next)
		if errors.Is(err, pgx.ErrNoRows) {
			if _, err := currentVersion(ctx, tx, org, c.Name); err != nil {
				return err
			}
			return ErrChanged
		}
		if err != nil {
			return fmt.Errorf("change site: %w", err)
		}
		if out, err = keep(ctx, tx, org, next, c); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from site_versions where org_id = $1 and site = $2 and version <= $3`, org,
			c.Name, int64(next)-int64(versions)); err != nil {
			return fmt.Errorf("forget rules: %w", err)
		}
		return nil
	})
	return out, err //nolint:wrapcheck // already wrapped in the function
}

// Delete marks a site as deleted; its versions and rules stay. Error: [ErrNotFound].
func (s *Store) Delete(ctx context.Context, org uuid.UUID, name string) error {
	tag, err := s.pool.Exec(ctx,
		`update sites set deleted_at = clock_timestamp() where org_id = $1 and site = $2 and deleted_at is null`, org,
		name)
	if err != nil {
		return fmt.Errorf("delete site: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// Version describes one document in a site's history.
type Version struct {
	Number  uint64
	Changed time.Time
	By      string
	Size    int // size of the document, in bytes
}

// Versions returns the stored versions of a site, newest first.
func (s *Store) Versions(ctx context.Context, org uuid.UUID, name string) ([]Version, error) {
	rows, _ := s.pool.Query(ctx, `
		select version, changed_at, changed_by, octet_length(rules) from site_versions
		where org_id = $1 and site = $2 order by version desc`, org, name) // rows reports the error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Version])
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return list, nil
}

// Key is an organization's signing key for rules.
type Key struct {
	Name   string
	Sealed []byte
}

// Key returns the key of an organization, or [ErrNotFound].
func (s *Store) Key(ctx context.Context, org uuid.UUID) (k Key, err error) {
	err = s.pool.QueryRow(ctx, `select name, sealed from site_keys where org_id = $1`, org).Scan(&k.Name, &k.Sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, ErrNotFound
	}
	if err != nil {
		return k, fmt.Errorf("read site key: %w", err)
	}
	return k, nil
}

// AddKey stores a key for an organization, unless it has one, and returns the stored key.
func (s *Store) AddKey(ctx context.Context, org uuid.UUID, k Key) (Key, error) {
	if _, err := s.pool.Exec(ctx,
		`insert into site_keys (org_id, name, sealed) values ($1, $2, $3) on conflict do nothing`, org, k.Name,
		k.Sealed); err != nil {
		return Key{}, fmt.Errorf("store site key: %w", err)
	}
	return s.Key(ctx, org)
}
