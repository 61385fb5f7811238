package pgroom

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Settings are the settings of a room, as a JSON object that this package does not parse, and the number of times
// they have changed.
type Settings struct {
	JSON    []byte // nil while the version is 0
	Version int64
}

// Settings returns the settings of a room, or [ErrNotFound].
func (s *Store) Settings(ctx context.Context, id uuid.UUID) (Settings, error) {
	return s.settings(ctx, `select settings, settings_version from rooms where room_id = $1`, id)
}

// MergeSettings replaces the members of the settings that the JSON object change contains, and returns the result,
// or [ErrNotFound].
func (s *Store) MergeSettings(ctx context.Context, id uuid.UUID, change []byte) (Settings, error) {
	return s.settings(ctx, `update rooms set settings = coalesce(settings, '{}') || $2, settings_version = settings_version + 1
		where room_id = $1 returning settings, settings_version`, id, change)
}

func (s *Store) settings(ctx context.Context, query string, args ...any) (Settings, error) {
	rows, _ := s.pool.Query(ctx, query, args...) // rows reports the error
	settings, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Settings])
	if errors.Is(err, pgx.ErrNoRows) {
		return Settings{}, ErrNotFound
	}
	if err != nil {
		return Settings{}, fmt.Errorf("room settings: %w", err)
	}
	return settings, nil
}
