package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
)

// joins records arrivals.
type joins struct {
	budgets   *budgets
	deadlines *deadlines
}

// join records an arrival. A visitor that sends no ticket gets a new secret and its ticket.
func (j *joins) join(c echo.Context, r *room.Room) (err error) {
	w := borrow()
	defer w.giveBack()
	c.Response().Header()["Cache-Control"] = noStore
	if err := j.budgets.join(c, r); err != nil {
		return err
	}
	if w.body, err = readBody(c.Request(), w.body[:0], joinBody(r)); err != nil {
		return err
	}
	own, secret, err := wishOf(w.body, r.Origin)
	if err != nil {
		return err
	}
	ctx := j.deadlines.next()
	joined, err := r.JoinLane(ctx, own.ticket, own.lane, own.seats, own.credentials...)
	j.budgets.settle(c, r, &joined, err)
	if err != nil {
		return err
	}
	if err := w.arrived(ctx, &joined); err != nil {
		return err
	}
	if secret != "" {
		w.answer.text("secret", secret)
	}
	return w.sendArrived(c, &joined)
}

// arrived writes the start of the answer to a join: the arrival and its receipt.
func (s *scratch) arrived(ctx context.Context, joined *room.Joined) (err error) {
	if s.receipt, err = joined.AppendReceipt(ctx, s.receipt[:0]); err != nil {
		return err
	}
	o := &s.answer
	o.reset()
	o.arrival(joined.Ticket.String(), &joined.Standing)
	o.name("receipt")
	o.b = appendText(o.b, s.receipt)
	return nil
}

// sendArrived completes the answer and sends it.
func (s *scratch) sendArrived(c echo.Context, joined *room.Joined) error {
	s.answer.close()
	status := http.StatusCreated
	if joined.Again {
		status = http.StatusOK
	}
	return send(c, status, jsonText, s.answer.b)
}

// doorBody is the maximum size of the body of a join in a room with methods, in bytes. A blind signature takes up to a
// kilobyte.
const doorBody = 24 << 10

// joinBody returns the maximum size of the body of a join.
func joinBody(r *room.Room) int {
	if r.Snapshot().Door == nil {
		return visitorBody
	}
	return doorBody
}

// wish is what a visitor joins with.
type wish struct {
	ticket      fairness.Ticket
	lane        fairness.Lane // "": the first
	seats       uint32
	credentials []credential.Credential
}

// wishOf parses the body of a join: a ticket, a lane, a number of seats and credentials, all optional. Without a ticket
// it creates a secret and the ticket.
func wishOf(body []byte, origin string) (w wish, secret string, err error) {
	w.seats = 1
	text, isTicket := plainMember(body, "ticket")
	if !isTicket && len(body) > 0 {
		texts, shown, err := membersWith("credentials", body, "ticket", "lane", "seats")
		if err == nil && shown != nil {
			w.credentials, err = door.ParseList(shown)
		}
		if err != nil {
			return w, "", err
		}
		text, w.lane = texts["ticket"], fairness.Lane(texts["lane"])
		seats, err := strconv.ParseUint(cmp.Or(texts["seats"], "1"), 10, 32)
		if err != nil {
			return w, "", invalid.Field("seats", `must be a number in a text, such as "2"`)
		}
		w.seats = uint32(seats)
	}
	if text == "" {
		var own [fairness.SecretSize]byte
		_, _ = rand.Read(own[:]) // never fails
		w.ticket = fairness.NewTicket(origin, own)
		return w, base64.RawURLEncoding.EncodeToString(own[:]), nil
	}
	w.ticket, err = parseTicket(text)
	return w, "", err
}

func parseTicket(text string) (fairness.Ticket, error) {
	t, err := fairness.ParseTicket(text)
	if err != nil {
		return t, invalid.Field("ticket", "must be a lower-case UUID of version 8")
	}
	return t, nil
}

// arrival writes the members of a ticket that never change.
func (o *object) arrival(ticket string, st *fairness.Standing) {
	o.text("ticket", ticket)
	o.number("index", uint64(st.Index))
	o.number("window", uint64(st.Window.Index))
	o.millis("window_from", int64(st.Window.From))
	o.millis("window_to", int64(st.Window.To))
	o.number("seq", uint64(st.Seq))
	o.millis("time", int64(st.Joined))
}
