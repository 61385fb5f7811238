package web

import (
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/web/confirm"
	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/reply"
)

// door writes what a device needs to know to make credentials.
func (o *object) door(d *room.Door) {
	o.text("entry", hex.EncodeToString(d.Entry[:]))
	o.list("methods")
	for _, m := range d.Methods {
		o.open("")
		o.text("name", m.Name)
		o.text("kind", string(m.Kind))
		if m.Bits > 0 {
			o.number("bits", uint64(m.Bits))
		} else {
			o.text("key", m.Key)
			o.number("limit", uint64(m.Limit))
		}
		o.number("taken", uint64(m.Taken))
		o.close()
	}
	o.closeList()
	if d.Work == nil {
		return
	}
	o.open("work")
	o.number("round", d.Work.Round)
	o.time("due", d.Work.Due)
	if d.Work.Signature == nil {
		o.null("signature")
	} else {
		o.text("signature", hex.EncodeToString(d.Work.Signature))
	}
	o.close()
}

// texts writes a list of texts.
func (o *object) texts(name string, list []string) {
	o.list(name)
	for _, text := range list {
		o.name("")
		o.b = appendText(o.b, []byte(text))
	}
	o.closeList()
}

// show appends a credential of a ticket that has joined, authorized by its secret.
func (j *joins) show(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	if err := j.budgets.show(c); err != nil {
		return err
	}
	t, err := parseTicket(c.Param("ticket"))
	if err != nil {
		return err
	}
	body, err := readBody(c.Request(), nil, visitorBody)
	if err != nil {
		return err
	}
	texts, err := anyMembers(body, "secret", "method", "nullifier", "evidence")
	if err != nil {
		return err
	}
	secret, err := parseSecret(texts["secret"])
	if err != nil {
		return err
	}
	w := door.Written{Method: texts["method"], Nullifier: texts["nullifier"], Evidence: texts["evidence"]}
	shown, err := w.Parse()
	if err != nil {
		return err
	}
	merit, err := r.Show(c.Request().Context(), t, secret, shown)
	if err != nil {
		return err
	}
	return sendMerit(c, &merit, shown.Method)
}

// sendMerit answers with the entry that shows the method: 201, or 200 if the ticket had shown it before.
func sendMerit(c echo.Context, merit *room.Merit, method string) error {
	w := borrow()
	defer w.giveBack()
	status, o := http.StatusCreated, &w.answer
	o.reset()
	o.text("ticket", merit.Ticket.String())
	o.text("method", method)
	if merit.Again {
		status = http.StatusOK
	}
	receipt, err := merit.AppendReceipt(c.Request().Context(), w.receipt[:0])
	if err != nil {
		return err
	}
	w.receipt = receipt
	o.number("index", merit.Entry)
	o.name("receipt")
	o.b = appendText(o.b, receipt)
	o.close()
	return reply.Send(c, status, reply.JSON, o.b)
}

// sendShown serves what a ticket has shown after its arrival: a line "method index" for each, oldest first.
func sendShown(c echo.Context, r *room.Room) error {
	st, err := standing(c, r)
	if err != nil {
		return err
	}
	return reply.Send(c, http.StatusOK, reply.Text, r.Transcript.Merits(st.Ticket))
}

// readIssued reads the form with which the page of an issuer sends a visitor back.
func readIssued(r *http.Request) (f confirm.Form, ticket fairness.Ticket, err error) {
	body, err := readAll(r, nil, visitorBody)
	if err != nil {
		return f, ticket, err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/x-www-form-urlencoded" {
		return f, ticket, errMediaType
	}
	if f, err = confirm.ParseForm(body); err == nil {
		ticket, err = parseTicket(f.Ticket)
	}
	return f, ticket, err
}

// joinIssued joins a ticket with the credential in an issuer page's form, and redirects to the room's page, which
// knows the visitor by the cookie. A form of another site comes without the cookie, and can do no more than any client.
// In a room with parties the visitor first chooses the seats, on a page that sends the form again. A ticket that has
// joined shows the credential if it gives one more lot.
func (p *pages) joinIssued(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	f, ticket, err := readIssued(c.Request())
	if err != nil {
		return err
	}
	shown, err := f.Parse()
	if err != nil {
		return err
	}
	if _, joined := r.Standing(ticket); f.Seats == "" && r.Policy().Party > 1 && !joined {
		return p.useIssued(c, r, &f, false)
	}
	seats, err := parseSeats(f.Seats)
	if err != nil {
		return err
	}
	if err := p.joins.budgets.join(c, r); err != nil {
		return err
	}
	if err := p.joins.budgets.judge(c, r, ticket); err != nil {
		return err
	}
	joined, err := r.JoinLane(p.joins.deadlines.next(c.Request()), ticket, f.Lane, seats, shown)
	p.joins.budgets.settle(c, r, &joined, err)
	if err != nil {
		return err
	}
	if _, more := r.Lots(ticket); slices.Contains(more, shown.Method) { // the ticket has joined without it
		return p.addLot(c, r, &f, ticket, shown)
	}
	return back(c, r)
}

// addLot shows a credential for one more lot of a ticket that has joined, if the form came with the ticket's cookie.
// From another site it comes without: then the visitor sends it again, on a page of this one.
func (p *pages) addLot(c echo.Context, r *room.Room, f *confirm.Form, ticket fairness.Ticket,
	shown credential.Credential) error {
	own, ok := holderOf(c, r)
	switch {
	case ok && own.ticket == ticket:
		if err := p.budgets.show(c); err != nil {
			return err
		}
		if _, err := r.Show(c.Request().Context(), own.ticket, own.secret, shown); err != nil {
			return err
		}
		return back(c, r)
	case f.Seats == "":
		return p.useIssued(c, r, f, true)
	}
	return errNoPlace
}

// useIssued serves the page on which a confirmed visitor chooses the seats, or takes one more lot.
func (p *pages) useIssued(c echo.Context, r *room.Room, f *confirm.Form, isLot bool) error {
	if err := p.budgets.page(c); err != nil {
		return err
	}
	v, err := p.renderer.view(c, r, fairness.Ticket{})
	if err != nil {
		return err
	}
	if v.Issued = f.Again(isLot); isLot {
		v.State = page.Joinable // as for the ticket: the room may be full
	}
	return sendPage(c, http.StatusOK, func(w io.Writer) error { return p.renderer.pages.Visitor(w, v) })
}
