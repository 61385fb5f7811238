package confirm_test

import (
	"net/url"
	"testing"

	"github.com/proofline/proofline/web/confirm"
)

// FuzzParseForm: what the page sends again is what the issuer's page has sent.
func FuzzParseForm(f *testing.F) {
	f.Add("ticket=cda3f665-387e-8031-a3d9-8534adbd7fa3&lane=general&method=club&nullifier=ab&evidence=cd&seats=1")
	f.Add("ticket=%zz")
	f.Add("ticket=1;lane=2")
	f.Add("evidence=a+b&evidence=c")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := confirm.ParseForm([]byte(body))
		if err != nil {
			return
		}
		again := form.Again(true)
		sent := url.Values{"ticket": {again.Ticket}, "lane": {again.Lane}, "method": {again.Method},
			"nullifier": {again.Nullifier}, "evidence": {again.Evidence}, "seats": {form.Seats}}
		if got, err := confirm.ParseForm([]byte(sent.Encode())); err != nil || got != form || !again.IsLot {
			t.Errorf("%+v, %v, want %+v", got, err, form)
		}
	})
}
