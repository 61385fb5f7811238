package web

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/poll"
	"github.com/proofline/proofline/web/reply"
)

// sendTicket serves the state of a ticket.
func sendTicket(c echo.Context, r *room.Room) error {
	st, err := standing(c, r)
	if err != nil {
		return err
	}
	return sendStanding(c, http.StatusOK, r, &st)
}

// standing returns the state of the ticket in the path.
func standing(c echo.Context, r *room.Room) (fairness.Standing, error) {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	t, err := parseTicket(c.Param("ticket"))
	if err != nil {
		return fairness.Standing{}, err
	}
	return r.Place(c.Request().Context(), t)
}

func sendStanding(c echo.Context, status int, r *room.Room, st *fairness.Standing) error {
	w := borrow()
	defer w.giveBack()
	o := &w.answer
	o.reset()
	s := r.Snapshot()
	o.standing(c.Param("ticket"), st, s, r.Now())
	if settings, _ := r.Settings(); settings.Appeal != "" && stateOf(st, s) == page.Revoked {
		o.text("appeal", settings.Appeal)
	}
	o.close()
	return reply.Send(c, status, reply.JSON, o.b)
}

// standing writes the state of a ticket.
func (o *object) standing(ticket string, st *fairness.Standing, s *room.Snapshot, now time.Time) {
	o.arrival(ticket, st)
	o.text("lane", string(st.Lane))
	if s.Slots > 0 && st.Window.Index == 0 {
		o.number("slot", uint64(st.Slot)) //nolint:gosec // not negative
	}
	if st.Seats > 1 {
		o.number("seats", uint64(st.Seats))
	}
	o.text("status", string(st.Status))
	if st.Position > 0 {
		o.number("position", uint64(st.Position))
	} else {
		o.null("position")
	}
	o.open("ahead")
	o.number("min", st.AheadMin)
	o.number("max", st.AheadMax)
	o.close()
	o.expected(st, s, now)
	switch st.Status {
	case fairness.StatusCalled:
		o.claimTime(st, s, now)
	case fairness.StatusAdmitted:
		o.millis("settled", int64(st.Settled))
	case fairness.StatusSkipped:
		o.text("reason", string(st.Reason))
		o.millis("settled", int64(st.Settled))
	default:
	}
	o.number("poll_after_ms", uint64(poll.Ticket(st, s, now).Milliseconds())) //nolint:gosec // not negative
}

// expected writes the expected time of the call, or null if it is unknown.
func (o *object) expected(st *fairness.Standing, s *room.Snapshot, now time.Time) {
	span, ok := s.Expected(*st, now)
	if !ok {
		o.null("eta")
		return
	}
	o.open("eta")
	o.time("earliest", span.Earliest)
	if s.Grows(*st, now) {
		o.null("latest")
	} else {
		o.time("latest", span.Latest)
	}
	o.close()
}

// claimTime writes the time left to claim a called ticket. During a pause that time stands still, so the deadline
// is unknown.
func (o *object) claimTime(st *fairness.Standing, s *room.Snapshot, now time.Time) {
	o.number("left_ms", uint64(st.Left)) //nolint:gosec // not negative
	if s.Paused {
		o.null("claim_by")
	} else {
		o.time("claim_by", now.Add(time.Duration(st.Left)*time.Millisecond))
	}
	if s.Extend > 0 && !st.Extended {
		o.number("extend_ms", uint64(s.Extend.Milliseconds())) //nolint:gosec // not negative
	}
}

// sendReceipt serves the proof that the ticket's arrival is in the newest tree.
func sendReceipt(c echo.Context, r *room.Room) error {
	st, err := standing(c, r)
	if err != nil {
		return err
	}
	receipt, err := r.Receipt(c.Request().Context(), st.Ticket)
	if err != nil {
		return err
	}
	return reply.Send(c, http.StatusOK, reply.Text, receipt)
}

// claimTicket exchanges a called ticket's secret for its pass, and returns the URL to redirect to. The
// secret is in the body because paths are logged.
func claimTicket(c echo.Context, r *room.Room) (err error) {
	w := borrow()
	defer w.giveBack()
	c.Response().Header()["Cache-Control"] = reply.NoStore
	t, err := parseTicket(c.Param("ticket"))
	if err != nil {
		return err
	}
	if w.body, err = readBody(c.Request(), w.body[:0], visitorBody); err != nil {
		return err
	}
	secret, to, err := readClaim(w.body)
	if err != nil {
		return err
	}
	target, ok := r.Target(to)
	if !ok && to.To != "" {
		return invalid.Field("to", wantTo)
	}
	pass, err := r.Claim(c.Request().Context(), t, secret)
	if errors.Is(err, room.ErrNotCalled) {
		return notCalled(c, r, t)
	}
	if err != nil {
		return err
	}
	st, _ := r.Standing(t) // the ticket is admitted, so it exists
	o := &w.answer
	o.reset()
	o.text("ticket", t.String())
	o.text("pass", pass.Token)
	o.text("pass_id", pass.ID.String())
	o.time("expires", pass.Expires)
	o.number("position", uint64(st.Position))
	o.text("lane", string(st.Lane))
	if ok {
		location, err := landing(c.Request().Context(), r, *target, st, pass)
		if err != nil {
			return err
		}
		o.text("location", location)
	} else {
		o.null("location")
	}
	o.close()
	return reply.Send(c, http.StatusOK, reply.JSON, o.b)
}

// ownTicket reads a request that names a ticket in its path, and has the secret in its body.
func ownTicket(c echo.Context) (t fairness.Ticket, secret [fairness.SecretSize]byte, err error) {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	if t, err = parseTicket(c.Param("ticket")); err != nil {
		return t, secret, err
	}
	body, err := readBody(c.Request(), nil, visitorBody)
	if err != nil {
		return t, secret, err
	}
	text, err := readText(body, "secret")
	if err != nil {
		return t, secret, err
	}
	secret, err = parseSecret(text)
	return t, secret, err
}

// placeChange changes a ticket's place, authorized by its secret: [room.Room.Leave] or [room.Room.Extend].
type placeChange func(*room.Room, context.Context, fairness.Ticket, [fairness.SecretSize]byte) error

// changeTicket returns a handler that makes a change and sends the ticket's state.
func changeTicket(change placeChange) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		t, secret, err := ownTicket(c)
		if err != nil {
			return err
		}
		if err := change(r, c.Request().Context(), t, secret); err != nil {
			return err
		}
		st, err := r.Place(c.Request().Context(), t)
		if err != nil {
			return err
		}
		return sendStanding(c, http.StatusOK, r, &st)
	}
}

// notCalled sends the ticket's state to a client that claims too early.
func notCalled(c echo.Context, r *room.Room, t fairness.Ticket) error {
	st, _ := r.Standing(t) // the ticket exists, but is not called
	askAgain(c.Response().Header(), poll.Ticket(&st, r.Snapshot(), r.Now()))
	return sendStanding(c, http.StatusAccepted, r, &st)
}

// readClaim parses the body of a claim: the secret, and optionally the target. Errors do not repeat
// its content.
func readClaim(body []byte) (secret [fairness.SecretSize]byte, to room.Wanted, err error) {
	text, ok := plainMember(body, "secret")
	if !ok {
		texts, err := anyMembers(body, "secret", "to", "to_sig")
		if err != nil {
			return secret, to, err
		}
		text, to = texts["secret"], room.Wanted{To: texts["to"], Sig: texts["to_sig"]}
	}
	secret, err = parseSecret(text)
	return secret, to, err
}

func parseSecret(text string) (secret [fairness.SecretSize]byte, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(secret) || len(text) != base64.RawURLEncoding.EncodedLen(len(b)) {
		return secret, invalid.Field("secret", "must be 32 bytes in base64url, 43 characters")
	}
	return [fairness.SecretSize]byte(b), nil
}
