package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/register"
)

// Target says where a room is imported.
type Target struct {
	Slug string    // name in the address; empty: as before
	Org  uuid.UUID // the organization that it belongs to from now on
}

// Import stores a checked room: first its entry in the log of rooms, and then, in one transaction, the room. The caller
// must know [Checked.VKey] from elsewhere, because anybody can write a file and sign it with another key. An import
// that was interrupted has stored no part of the room, and can be repeated. Errors: [ErrExists], [ErrTaken], those of
// [register.Register.Import], and those of the database.
func Import(ctx context.Context, rs *room.Rooms, c *Checked, to Target) error {
	if to.Slug == "" {
		to.Slug = c.Slug
	}
	switch there, err := rs.Store.Get(ctx, to.Slug); {
	case errors.Is(err, pgroom.ErrNotFound):
	case err != nil:
		return err
	case there.Origin == c.Origin:
		return fmt.Errorf("%w: %s", ErrExists, to.Slug)
	default:
		return fmt.Errorf("%w: %s", ErrTaken, to.Slug)
	}
	if there, err := rs.Store.WithOrigin(ctx, c.Origin); err == nil {
		return fmt.Errorf("%w, under the name %s", ErrExists, there.Slug)
	} else if !errors.Is(err, pgroom.ErrNotFound) {
		return err
	}
	settings := c.Settings
	settings.Brand = settings.Brand.Stored()
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	end := pglog.Mark{Size: c.head.Size, Root: c.head.Root}
	listed := register.Imported{VKey: c.VKey, First: c.first, End: end, IsLost: c.IsLost}
	if err := rs.Register.Import(ctx, listed); err != nil {
		return err
	}
	id := pgroom.RoomID(to.Slug)
	log := pglog.Import{Head: c.head, Signed: c.signed, Time: int64(c.last), Ended: c.Statement, Bundle: c.source.Tile}
	err = rs.Store.Import(ctx, pgroom.Imported{
		Room: pgroom.Room{ID: id, Slug: to.Slug, Origin: c.Origin, Title: c.Title, Created: c.Created, Ended: &c.Ended,
			Owner: pgroom.Owner{Org: to.Org}, VKey: &c.VKey},
		Pass: keys.GeneratePass(rs.MasterKey, id), Settings: text, Messages: c.Messages,
	}, log.Store)
	if errors.Is(err, pgroom.ErrExists) { // another import was quicker
		return fmt.Errorf("%w: %s", ErrExists, to.Slug)
	}
	return err
}
