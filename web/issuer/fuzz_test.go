package issuer

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential/issuer"
)

// FuzzAsk reads forms of rooms' pages. What it accepts names a lane of the offer and a canonical ticket.
func FuzzAsk(f *testing.F) {
	o := &Offer{Offer: &issuer.Offer{Name: "derby", Lanes: []string{"general"}}}
	f.Add("ticket=cda3f665-387e-8031-a3d9-8534adbd7fa3&lane=general&response=fragment")
	f.Add("blinded=00ff&response=fragment")
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/derby", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		got, err := ask(r, o, time.Unix(0, 0))
		if err != nil {
			return
		}
		form, _ := url.ParseQuery(body)
		if fairness.Ticket(got.Request.Ticket).String() != form.Get("ticket") || !slices.Contains(o.Lanes, got.Request.Lane) {
			t.Errorf("%q: %+v", body, got)
		}
	})
}

// FuzzOpen opens what visitors send back. Only what was sealed for the same stage opens.
func FuzzOpen(f *testing.F) {
	sealing, err := newSealing(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	s := &Site{Config: Config{Now: func() time.Time { return time.Unix(0, 0) }}, sealing: sealing,
		offers: map[string]*Offer{"derby": {}}}
	sealed, err := s.seal(asking, &flow{Offer: "derby", Until: 1})
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := s.open(f.Context(), asking, sealed); err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add(sealed[1:])
	f.Fuzz(func(t *testing.T, text string) {
		if got, _, err := s.open(t.Context(), asking, text); err == nil && (got.Offer != "derby" || got.Until != 1 || got.Request.Lane != "") {
			t.Errorf("%q opens as %+v", text, got)
		}
		if _, _, err := s.open(t.Context(), mailed, text); err == nil {
			t.Errorf("%q opens at another stage", text)
		}
	})
}
