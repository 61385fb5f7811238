package pgaccount

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Host is a custom host claimed by an organization.
type Host struct {
	Org      uuid.UUID
	Host     string
	Token    string
	Verified *time.Time
}

const hostColumns = `org_id, host, token, verified_at`

// Hosts stores claims to custom hosts, in the table hosts.
type Hosts struct{ pool *pgxpool.Pool }

// Add stores a claim. It returns [ErrExists] if the organization has made it before.
func (s *Hosts) Add(ctx context.Context, h Host) error {
	return exec(ctx, s.pool, "store host", `insert into hosts (org_id, host, token) values ($1, $2, $3)`, h.Org,
		h.Host, h.Token)
}

// Get returns one claim, or [ErrNotFound].
func (s *Hosts) Get(ctx context.Context, org uuid.UUID, host string) (Host, error) {
	return one[Host](ctx, s.pool, "read host", `select `+hostColumns+` from hosts where org_id = $1 and host = $2`,
		org, host)
}

// List returns the claims of an organization by name.
func (s *Hosts) List(ctx context.Context, org uuid.UUID) ([]Host, error) {
	return all[Host](ctx, s.pool, "list hosts", `select `+hostColumns+` from hosts where org_id = $1 order by host`,
		org)
}

// Verified maps verified hosts to their organizations.
func (s *Hosts) Verified(ctx context.Context) (map[string]uuid.UUID, error) {
	rows, _ := s.pool.Query(ctx, `select host, org_id from hosts where verified_at is not null`)
	owners := map[string]uuid.UUID{}
	var host string
	var org uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&host, &org}, func() error { owners[host] = org; return nil }); err != nil {
		return nil, fmt.Errorf("list verified hosts: %w", err)
	}
	return owners, nil
}

// Verify makes a host an organization's own, and voids the verification by any other.
func (s *Hosts) Verify(ctx context.Context, org uuid.UUID, host string, now time.Time) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, "take host", `update hosts set verified_at = null where host = $2 and org_id <> $1`,
			org, host); err != nil {
			return err
		}
		return must(ctx, tx, "verify host", `update hosts set verified_at = $3 where org_id = $1 and host = $2`, org,
			host, now)
	})
}

// Remove deletes a claim. It returns [ErrNotFound], or [ErrInUse] while a room that has not
// ended is published under the host.
func (s *Hosts) Remove(ctx context.Context, org uuid.UUID, host string) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "remove host", `delete from hosts where org_id = $1 and host = $2`, org,
			host); err != nil {
			return err
		}
		used, err := value[bool](ctx, tx, "look for rooms of a host", `select exists (select from rooms
			where org_id = $1 and host = $2 and ended_at is null)`, org, host)
		if err == nil && used {
			return ErrInUse
		}
		return err
	})
}
