package control

import (
	"context"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Rehearse starts a rehearsal: simulated visitors join a copy of a room. Errors: those of [Rooms.Room]
// and [rehearse.Rehearsals.Start].
func (rs *Rooms) Rehearse(ctx context.Context, actor account.Actor, slug string,
	p rehearse.Plan) (rehearse.Rehearsal, error) {
	r, err := rs.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return rehearse.Rehearsal{}, err
	}
	return rs.rehearse(ctx, actor, slug, r.ID, r.Config(), p)
}

// RehearseDraft starts a rehearsal of an unpublished room. Errors: also [ErrDraftUnknown], and
// [*invalid.Error] if the draft has problems.
func (rs *Rooms) RehearseDraft(ctx context.Context, actor account.Actor, id uuid.UUID,
	p rehearse.Plan) (rehearse.Rehearsal, error) {
	if !actor.May(account.Operate) {
		return rehearse.Rehearsal{}, account.ErrForbidden
	}
	draft, err := rs.Drafts.Get(ctx, actor, id)
	if err != nil {
		return rehearse.Rehearsal{}, err
	}
	c, err := room.ParseConfig(draft.Draft.Config)
	if err != nil {
		return rehearse.Rehearsal{}, err
	}
	return rs.rehearse(ctx, actor, id.String(), id, c, p)
}

func (rs *Rooms) rehearse(ctx context.Context, actor account.Actor, object string, of uuid.UUID, c room.Config,
	p rehearse.Plan) (started rehearse.Rehearsal, err error) {
	details := map[string]any{"visitors": p.Visitors}
	if p.Script.Tickets > 0 {
		details["script"] = p.Script.Tickets
	}
	err = rs.Activity.Do(ctx, actor, "rehearsal.start", object, details, func() error {
		started, err = rs.Rehearsals.Start(ctx, pgroom.Owner{Org: actor.Org, RehearsalOf: &of}, c, p)
		return err
	})
	return started, err
}

// ListRehearsals returns the rehearsals of the actor's organization on this server, including those
// that ended recently.
func (rs *Rooms) ListRehearsals(actor account.Actor) ([]rehearse.Rehearsal, error) {
	if !actor.May(account.Read) {
		return nil, account.ErrForbidden
	}
	return rs.Rehearsals.List(actor.Org), nil
}

// StopRehearsal ends a rehearsal, or returns [rehearse.ErrUnknown].
func (rs *Rooms) StopRehearsal(ctx context.Context, actor account.Actor, slug string) error {
	if !actor.May(account.Operate) {
		return account.ErrForbidden
	}
	return rs.Activity.Do(ctx, actor, "rehearsal.stop", slug, nil, func() error {
		return rs.Rehearsals.Stop(ctx, actor.Org, slug)
	})
}
