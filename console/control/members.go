package control

import (
	"context"
	"errors"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// ErrCodes means that a method's list has codes, which members cannot replace.
var ErrCodes = errors.New("codes were made for this method, and members cannot replace them")

// MaxMembers is the maximum length of a list of members.
const MaxMembers = 100_000

// Members describes a list of members, of which the issuer keeps keyed hashes alone.
type Members struct {
	Count   int   // members
	Before  int   // members of the list that it replaces
	LeftOut []int // numbers of the rows, from 1, that lack a value or repeat a member
}

// SetMembers replaces the members for whom the server's own issuer vouches for a method of a room, or with check only
// reads them. Each row has the values that a member types in, in the order of the columns, which name them. Errors:
// those of [Rooms.Room], [*invalid.Error], [ErrNotOwn], [ErrCodes].
func (rs *Rooms) SetMembers(ctx context.Context, actor account.Actor, slug, method string, columns []string,
	rows [][]string, check bool) (m Members, err error) {
	set := func(r *room.Room) error {
		if !rs.owns(r, method) {
			return ErrNotOwn
		}
		m, err = rs.Issuer.SetMembers(slug, method, columns, rows, check)
		return err
	}
	if check {
		r, err := rs.room(ctx, actor, account.Operate, slug)
		if err != nil {
			return m, err
		}
		return m, set(r)
	}
	_, err = rs.control(ctx, actor, account.Operate, "room.members", slug,
		map[string]any{"method": method, "count": len(rows)}, set)
	return m, err
}
