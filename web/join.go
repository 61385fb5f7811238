package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/web/reply"
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
	c.Response().Header()["Cache-Control"] = reply.NoStore
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
	if err := j.budgets.judge(c, r, own.ticket); err != nil {
		return err
	}
	ctx := j.deadlines.next(c.Request())
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
	return reply.Send(c, status, reply.JSON, s.answer.b)
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
		if w, ok := plainWish(body); ok {
			return w, "", nil
		}
		if w, text, err = anyWish(body); err != nil {
			return w, "", err
		}
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

// anyWish parses the body of a join in any form, except for its ticket, which it returns as a text; empty: none.
func anyWish(body []byte) (w wish, ticket string, err error) {
	texts, err := membersWith([]string{"seats", "credentials"}, body, "ticket", "lane")
	if shown := texts["credentials"]; err == nil && shown != "" {
		w.credentials, err = door.ParseList([]byte(shown))
	}
	if err == nil {
		w.seats, err = parseSeats(texts["seats"])
	}
	w.lane = fairness.Lane(texts["lane"])
	return w, texts["ticket"], err
}

// parseSeats parses the number of seats in JSON or a form; none and null: one.
func parseSeats(text string) (uint32, error) {
	if text == "" || text == "null" {
		return 1, nil
	}
	seats, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, invalid.Field("seats", "must be a whole number, such as 2")
	}
	return uint32(seats), nil
}

// wishForm has the names of the members of a join, each once.
var wishForm = jsontext.Form{Depth: 3, Items: fairness.MaxMethods, Name: func(within []string, name string) string {
	switch {
	case len(within) == 0 && (name == "ticket" || name == "lane" || name == "seats" || name == "credentials"),
		len(within) > 0 && door.IsMember(name):
		return ""
	}
	return "is unknown"
}}

// plainWish parses the body of a join with a ticket and credentials as anyWish does, in half of the time. It returns
// false if something is missing or wrong, for anyWish to say what.
func plainWish(body []byte) (w wish, ok bool) {
	var in struct {
		Ticket      string          `json:"ticket"`
		Lane        fairness.Lane   `json:"lane"`
		Seats       json.RawMessage `json:"seats"`
		Credentials []door.Written  `json:"credentials"`
	}
	if wishForm.Check(body) != nil || json.Unmarshal(body, &in) != nil || len(in.Credentials) == 0 {
		return w, false
	}
	ticket, err := fairness.ParseTicket(in.Ticket)
	if err != nil {
		return w, false
	}
	seats, wrong := parseSeats(string(in.Seats))
	list, err := door.Parse(in.Credentials)
	return wish{ticket, in.Lane, seats, list}, wrong == nil && err == nil
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
