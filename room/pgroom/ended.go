package pgroom

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Ended returns the sessions of a room, queued and unqueued, that a site has ended within since, at most limit,
// the latest first. Time is counted from the start of the statement: being constant, it lets the indices be
// scanned from there on.
func (s *Connectors) Ended(ctx context.Context, room uuid.UUID, since time.Duration, limit int) ([]uuid.UUID, error) {
	rows, _ := s.pool.Query(ctx, `select id from (
			(select pass_id as id, floor(extract(epoch from released_at) * 1000)::bigint as at_ms from room_sessions
				where room_id = $1 and released_at > now() - $2::interval order by released_at desc limit $3)
			union all
			(select session_id, ended_ms from room_free_sessions
				where room_id = $1 and ended_ms > floor(extract(epoch from now() - $2::interval) * 1000)::bigint order by ended_ms desc limit $3)
		) as ended order by at_ms desc limit $3`, room, since, limit)
	list, err := pgx.AppendRows([]uuid.UUID(nil), rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("read ended sessions: %w", err)
	}
	return list, nil
}
