package confirm

import (
	"net/url"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/web/page"
)

// Form is the form with which the page of an issuer sends a visitor back.
type Form struct {
	Ticket string // as written
	Lane   fairness.Lane
	Seats  string // empty: it comes from the issuer's page, and not from the room's
	door.Written
}

// ParseForm parses the form as a browser sends it.
func ParseForm(body []byte) (f Form, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return f, invalid.Field("", "must be a form")
	}
	return Form{form.Get("ticket"), fairness.Lane(form.Get("lane")), form.Get("seats"),
		door.Written{Method: form.Get("method"), Nullifier: form.Get("nullifier"), Evidence: form.Get("evidence")}}, nil
}

// Again returns the form for the visitor to send again: to join with a number of seats, or for one more lot.
func (f *Form) Again(isLot bool) *page.Issued {
	return &page.Issued{IsLot: isLot, Ticket: f.Ticket, Lane: string(f.Lane), Method: f.Method, Nullifier: f.Nullifier,
		Evidence: f.Evidence}
}
