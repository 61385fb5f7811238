package pgroom

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrQuota is returned when an organization has as many rooms as it may.
var ErrQuota = errors.New("the organization has as many rooms as it may: end one, or ask the server's administrator for more")

// Quota is what an organization may use at most; 0: no limit.
type Quota struct {
	Rooms   uint64 // that have not ended
	Waiting uint64 // visitors in line in all rooms
	Streams uint64 // event streams open at each server
	Entries uint64 // entries of all transcripts: three or four for each visitor
}

// Usage is a quota, and what the database knows of its use.
type Usage struct {
	Org uuid.UUID
	Quota
	OpenRooms uint64
	Stored    uint64 // entries of all transcripts
}

// OrgOf returns the id of the organization with a slug, or [ErrNotFound].
func (s *Store) OrgOf(ctx context.Context, slug string) (id uuid.UUID, err error) {
	err = s.pool.QueryRow(ctx, `select org_id from organizations where slug = $1`, slug).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return id, ErrNotFound
	}
	if err != nil {
		return id, fmt.Errorf("read organization %s: %w", slug, err)
	}
	return id, nil
}

const usage = `select o.org_id, o.max_rooms, o.max_waiting, o.max_streams, o.max_entries,
	count(r.room_id) filter (where r.ended_at is null), coalesce(sum(h.size) filter (where h.archived = ''), 0)::bigint
	from organizations o left join rooms r using (org_id) left join log_heads h using (room_id) `

// Usages returns the usage of all organizations that have a quota.
func (s *Store) Usages(ctx context.Context) ([]Usage, error) {
	rows, _ := s.pool.Query(ctx, usage+`where o.max_rooms + o.max_waiting + o.max_streams + o.max_entries > 0 group by o.org_id`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Usage])
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	return list, nil
}

// Usage returns the usage of an organization; that of one that does not exist is empty.
func (s *Store) Usage(ctx context.Context, org uuid.UUID) (Usage, error) {
	rows, _ := s.pool.Query(ctx, usage+`where o.org_id = $1 group by o.org_id`, org)
	u, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Usage])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return u, fmt.Errorf("read quota: %w", err)
	}
	return u, nil
}

// SetQuota sets the quota of an organization.
func (s *Store) SetQuota(ctx context.Context, org uuid.UUID, q Quota) error {
	_, err := s.pool.Exec(ctx, `update organizations set max_rooms = $2, max_waiting = $3, max_streams = $4, max_entries = $5 where org_id = $1`,
		org, q.Rooms, q.Waiting, q.Streams, q.Entries)
	if err != nil {
		return fmt.Errorf("set quota: %w", err)
	}
	return nil
}

// allow returns [ErrQuota] if the organization, with the room that the transaction inserts, has more rooms than it may.
// Until the transaction ends, no other room of the organization is allowed.
func allow(ctx context.Context, tx pgx.Tx, org uuid.UUID) error {
	var most, open uint64
	err := tx.QueryRow(ctx, `select max_rooms from organizations where org_id = $1 for update`, org).Scan(&most)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && most == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `select count(*) from rooms where org_id = $1 and ended_at is null`, org).Scan(&open)
	if err == nil && open > most {
		return ErrQuota
	}
	return err
}
