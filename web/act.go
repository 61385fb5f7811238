package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/transfer"
	"github.com/proofline/proofline/web/reply"
)

// passParameter is the query parameter with the pass in the target's URL.
const passParameter = "proofline_pass"

const wantTo = "must be one of the room's targets, or below one"

// crossOrigin returns the protection against requests that pages of other sites send with a visitor's
// cookies. The server's own address counts as the same site even if a proxy hides it.
func crossOrigin(o Options) *http.CrossOriginProtection {
	protection := http.NewCrossOriginProtection()
	u, err := url.Parse(o.publicURL())
	if err == nil && u.Host != "" {
		err = protection.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	if err != nil {
		o.Log.Error("cannot use the public URL as an origin: forms may be refused", "err", err)
	}
	return protection
}

// actions serves the forms and buttons of a room's page.
type actions struct {
	finder      *roomFinder
	crossOrigin *http.CrossOriginProtection
	budgets     *budgets
	deadlines   *deadlines
}

func (a *actions) register(e *echo.Echo) {
	e.POST(inRoom+"/line", a.handle(a.line))
	e.POST(inRoom+"/claim", a.handle(enter))
	e.POST(inRoom+"/leave", a.handle(onPlace((*room.Room).Leave)))
	e.POST(inRoom+"/extend", a.handle(onPlace((*room.Room).Extend)))
	e.POST(inRoom+"/link", a.handle(a.link))
	e.POST(inRoom+"/take", a.handle(a.take))
}

// handle wraps the handler of a visitor's action on a page, submitted by a form or by the page's
// script.
func (a *actions) handle(handle func(echo.Context, *room.Room, *submission) error) echo.HandlerFunc {
	return a.finder.inLine(func(c echo.Context, r *room.Room) error {
		if a.crossOrigin.Check(c.Request()) != nil {
			return errCrossOrigin
		}
		in, err := readSubmission(c.Request())
		if err != nil {
			return err
		}
		return handle(c, r, in)
	})
}

// submission is the content of a form or of a script's request.
type submission struct {
	isJSON bool
	secret *[fairness.SecretSize]byte // nil: none given
	again  bool                       // the visitor wants a new place
	seats  uint32                     // of a join
	lane   string                     // lane for which an issuer is to confirm the visitor; empty: none
	code   string                     // transfer code of a place to take over
	to     room.Wanted                // target to redirect to after a claim
}

// readSubmission reads a form or JSON. Errors do not repeat its content.
func readSubmission(r *http.Request) (*submission, error) {
	body, err := readAll(r, nil, visitorBody)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case media == "application/json":
		return parseSubmission(body)
	case media == "application/x-www-form-urlencoded", len(body) == 0:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, invalid.Field("", "must be a form")
		}
		to := room.Wanted{To: form.Get("to"), Sig: form.Get("to_sig")}
		seats, err := parseSeats(form.Get("seats"))
		return &submission{again: form.Get("again") == "1", seats: seats, lane: form.Get("lane"), to: to}, err
	}
	return nil, errMediaType
}

func parseSubmission(body []byte) (*submission, error) {
	var in struct {
		Secret *string `json:"secret"`
		Again  bool    `json:"again"`
		Seats  uint32  `json:"seats"`
		Code   string  `json:"code"`
		To     string  `json:"to"`
		Sig    string  `json:"to_sig"`
	}
	in.Seats = 1
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if len(body) > 0 && (d.Decode(&in) != nil || d.Decode(new(any)) != io.EOF) { //nolint:errorlint // never wrapped
		return nil, invalid.Field("",
			`must be a JSON object with only "secret", "code", "to" and "to_sig", strings, "seats", a number, and "again", true or false`)
	}
	to := room.Wanted{To: in.To, Sig: in.Sig}
	out := &submission{isJSON: true, again: in.Again, seats: in.Seats, code: in.Code, to: to}
	if in.Secret != nil {
		secret, err := parseSecret(*in.Secret)
		if err != nil {
			return nil, err
		}
		out.secret = &secret
	}
	return out, nil
}

// holder returns the holder from the cookie or, without one, from the submitted secret.
func (in *submission) holder(c echo.Context, r *room.Room) (holder, error) {
	if own, ok := holderOf(c, r); ok {
		return own, nil
	}
	if in.secret == nil {
		return holder{}, errNoPlace
	}
	return newHolder(r, *in.secret), nil
}

// line adds a visitor to the first lane that needs no credentials, or keeps the visitor's earlier place if it is still
// usable.
func (a *actions) line(c echo.Context, r *room.Room, in *submission) error {
	own, kept := in.joiner(c, r)
	if err := a.budgets.join(c, r); err != nil {
		return err
	}
	if err := a.budgets.judge(c, r, own.ticket); err != nil {
		return err
	}
	if in.lane != "" { // the page now leads to the issuer, with the ticket
		own.keep(c, r)
		return c.Redirect(http.StatusSeeOther, pathOf(r)+"?confirm=1")
	}
	ctx := a.deadlines.next(c.Request())
	joined, err := r.JoinLane(ctx, own.ticket, r.Snapshot().OpenLane(), in.seats)
	a.budgets.settle(c, r, &joined, err)
	if _, unsure := tookTooLong(err); err == nil || unsure {
		own.keep(c, r) // a join with unknown outcome is repeated with the same secret
	}
	if err != nil {
		return err
	}
	if !in.isJSON {
		return back(c, r)
	}
	w := borrow()
	defer w.giveBack()
	if err := w.arrived(ctx, &joined); err != nil {
		return err
	}
	w.answer.flag("kept", kept)
	return w.sendArrived(c, &joined)
}

// joiner returns the holder that joins, and reports whether it comes from the cookie.
func (in *submission) joiner(c echo.Context, r *room.Room) (own holder, kept bool) {
	var other holder
	if in.secret != nil {
		other = newHolder(r, *in.secret)
	} else {
		_, _ = rand.Read(other.secret[:]) // never fails
		other = newHolder(r, other.secret)
	}
	own, ok := holderOf(c, r)
	if !ok {
		return other, false
	}
	st, joined := r.Standing(own.ticket)
	_, otherJoined := r.Standing(other.ticket)
	if !joined && otherJoined {
		_, err := r.Place(c.Request().Context(), own.ticket)
		joined = !errors.Is(err, room.ErrTicketUnknown) // on a node that is out of date, Join decides
	}
	isOver := func() bool {
		return st.Status == fairness.StatusSkipped && !st.Reason.IsRevoked() ||
			st.Status == fairness.StatusAdmitted && !r.Sessions.IsIn(c.Request().Context(), st)
	}
	if in.again && isOver() || !joined && otherJoined {
		return other, false
	}
	return own, true
}

// enter claims a called visitor's place and redirects to the target.
func enter(c echo.Context, r *room.Room, in *submission) error {
	own, err := in.holder(c, r)
	if err != nil {
		return err
	}
	if in.to.To == "" {
		in.to = wantedTarget(c, r)
	}
	target, ok := r.Target(in.to)
	if !ok && in.to.To != "" {
		return invalid.Field("to", wantTo)
	}
	location := ""
	pass, err := r.Claim(c.Request().Context(), own.ticket, own.secret)
	st, _ := r.Standing(own.ticket)
	switch hasRunOut := errors.Is(err, room.ErrExpired) && st.Status == fairness.StatusAdmitted; {
	// An admitted visitor needs no new pass.
	case err != nil && (!hasRunOut || !ok || !r.Sessions.IsIn(c.Request().Context(), st)):
		return err
	case ok:
		if location, err = landing(c.Request().Context(), r, *target, st, pass); err != nil {
			return err
		}
	}
	switch {
	case in.isJSON && ok:
		return c.JSON(http.StatusOK, map[string]string{"location": location})
	case in.isJSON:
		return c.JSON(http.StatusOK, map[string]any{"location": nil})
	case ok:
		return c.Redirect(http.StatusSeeOther, location)
	}
	return back(c, r)
}

// onPlace returns an action that changes a visitor's place.
func onPlace(change placeChange) func(echo.Context, *room.Room, *submission) error {
	return func(c echo.Context, r *room.Room, in *submission) error {
		own, err := in.holder(c, r)
		if err != nil {
			return err
		}
		if err := change(r, c.Request().Context(), own.ticket, own.secret); err != nil {
			return err
		}
		if in.isJSON {
			return reply.Send(c, http.StatusOK, reply.JSON, []byte("{}"))
		}
		return back(c, r)
	}
}

// link returns a link with a transfer code, which moves the place to another device, once. The code
// is in the fragment, which browsers do not send.
func (a *actions) link(c echo.Context, r *room.Room, in *submission) error {
	if !in.isJSON {
		return errMediaType
	}
	own, err := in.holder(c, r)
	if err != nil {
		return err
	}
	var code string
	err = a.budgets.inTurn(c, func() (err error) {
		code, err = r.Transfers.Begin(c.Request().Context(), own.ticket, own.secret)
		return err
	})
	if err != nil {
		return err
	}
	life := int(transfer.Lasts.Seconds())
	return c.JSON(http.StatusOK, map[string]any{"link": r.URL + "#t=" + code, "seconds": life})
}

// take gives a visitor the place of a transfer link; the page has asked for confirmation. A browser
// that already has a place in the line keeps that one, and the link stays valid.
func (a *actions) take(c echo.Context, r *room.Room, in *submission) error {
	if !in.isJSON {
		return errMediaType
	}
	ctx := c.Request().Context()
	if own, ok := holderOf(c, r); ok {
		switch _, err := r.Place(ctx, own.ticket); {
		case err == nil:
			return c.JSON(http.StatusOK, map[string]any{"ticket": own.ticket.String(), "kept": true})
		case !errors.Is(err, room.ErrTicketUnknown):
			return err
		}
	}
	var secret [fairness.SecretSize]byte
	err := a.budgets.inTurn(c, func() (err error) {
		secret, err = r.Transfers.Take(ctx, in.code)
		return err
	})
	if err != nil {
		return err
	}
	own := newHolder(r, secret)
	own.keep(c, r)
	return c.JSON(http.StatusOK, map[string]any{"ticket": own.ticket.String(), "secret": own.text(), "kept": false})
}

// back redirects a browser to the room's page.
func back(c echo.Context, r *room.Room) error { return c.Redirect(http.StatusSeeOther, pathOf(r)) }
