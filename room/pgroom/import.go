package pgroom

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrExists is returned when a room is imported under a slug that is taken.
var ErrExists = errors.New("a room with this name is there already")

// Imported is a room that another server created and ended.
type Imported struct {
	Room              // Ended, Created and VKey are set
	Pass     Key      // seals nothing that visitors have: no pass of the room is issued here
	Settings []byte   // JSON object; nil: none
	Messages []string // in canonical form
}

// WithOrigin returns the room whose log has the origin, or [ErrNotFound].
func (s *Store) WithOrigin(ctx context.Context, origin string) (Room, error) {
	list, err := s.list(ctx, `select `+columns+` from rooms where origin = $1`, origin)
	if err != nil || len(list) == 0 {
		return Room{}, cmp.Or(err, ErrNotFound)
	}
	return list[0], nil
}

// Import stores a room, and calls log with its id in the same transaction: everything is stored, or nothing. It returns
// [ErrExists] if the slug is taken.
func (s *Store) Import(ctx context.Context, r Imported,
	log func(ctx context.Context, tx pgx.Tx, id uuid.UUID) error) error {
	version := 0
	if r.Settings != nil {
		version = 1
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into rooms
			(room_id, slug, origin, title, created_at, ended_at, settings, settings_version, org_id, vkey)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
			r.ID, r.Slug, r.Origin, r.Title, r.Created, r.Ended, r.Settings, version, r.Org, r.VKey)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrExists
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into room_keys (room_id, purpose, sealed) values ($1, $2, $3)`, r.ID,
			r.Pass.Purpose, r.Pass.Sealed); err != nil {
			return err
		}
		for _, text := range r.Messages {
			hash := sha256.Sum256([]byte(text))
			if _, err := tx.Exec(ctx, `insert into room_messages (room_id, hash, text) values ($1, $2, $3)
				on conflict do nothing`, r.ID, hash[:], text); err != nil {
				return err
			}
		}
		return log(ctx, tx, r.ID)
	})
	if err != nil {
		return fmt.Errorf("import room %s: %w", r.Slug, err)
	}
	return nil
}
