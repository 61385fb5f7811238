package web

import (
	"errors"
	"net/netip"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/limit"
)

// budgets charges requests to the budgets of their networks.
type budgets struct {
	limits  *limit.Limits // nil: no limits
	clients *client.Addresses
}

// network returns the address whose network pays for a request.
func (b *budgets) network(c echo.Context) netip.Addr { return b.clients.Of(c.Request()) }

// join charges a join to its network's budgets.
func (b *budgets) join(c echo.Context, r *room.Room) error {
	if b.limits == nil {
		return nil
	}
	err := b.limits.Join(b.network(c), r.Slug)
	if err != nil {
		r.Refused.ByNetwork()
	}
	return err
}

// errVerdict means that a bot tool in front refuses the visitor.
var errVerdict = errors.New("a check in front of this line took the visitor for a program: " +
	"try another browser or connection, or turn to the organizer")

// judge refuses the join of a ticket that has no place if a bot tool in front does. The verdict decides nothing else,
// and is not kept.
func (b *budgets) judge(c echo.Context, r *room.Room, t fairness.Ticket) error {
	v := b.clients.Verdict(c.Request())
	if v == (client.Verdict{}) {
		return nil
	}
	settings, _ := r.Settings()
	if !v.Refuses(settings.MinScore) {
		return nil
	}
	if _, ok := r.Standing(t); ok {
		return nil
	}
	r.Refused.ByVerdict()
	b.limits.NoTicket(b.network(c), r.Slug)
	return errVerdict
}

// show charges a credential shown after the arrival like a join: verifying it costs as much.
func (b *budgets) show(c echo.Context) error { return b.limits.Take(b.network(c), limit.Joins, 1) }

// settle refunds the charge for a ticket if the join recorded none. A join with unknown outcome
// stays charged.
func (b *budgets) settle(c echo.Context, r *room.Room, joined *room.Joined, err error) {
	if _, unsure := tookTooLong(err); b.limits == nil || unsure || err == nil && !joined.Again {
		return
	}
	b.limits.NoTicket(b.network(c), r.Slug)
}

// inTurn runs do, which uses the database, in the network's turn. It must not wait for the client:
// the body is read before, and the answer is written after.
func (b *budgets) inTurn(c echo.Context, do func() error) error {
	done, err := b.limits.Turn(c.Request().Context(), b.network(c))
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// page charges a page that is about to be rendered.
func (b *budgets) page(c echo.Context) error {
	if b.limits == nil {
		return nil
	}
	return b.limits.Take(b.network(c), limit.Pages, 1)
}
