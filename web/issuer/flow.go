package issuer

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential/issuer"
)

// flowLife is the time in which a visitor must have proven an account.
const flowLife = 30 * time.Minute

// flow is what a visitor asks for, and how far the visitor has come. It travels in forms and in a cookie, sealed
// so that visitors can neither read nor change it.
type flow struct {
	Offer    string
	Request  issuer.Request
	Fragment bool  // the credential goes back in the fragment of the room's address, otherwise in a form
	Until    int64 // Unix time
	IsLot    bool  `json:",omitempty"` // for one more lot of a place that there is

	Address string `json:",omitempty"` // to which the code was sent, or that was proven
	Code    string `json:",omitempty"`
	IsKnown bool   `json:",omitempty"` // the address may have a credential

	State, Nonce, Verifier string `json:",omitempty"` // of OpenID Connect

	Puzzle  *asked          `json:",omitempty"`
	Account string          `json:",omitempty"` // that was proven, while a passkey for it is made
	Session json.RawMessage `json:",omitempty"` // of WebAuthn
}

// stage is the form or cookie that a sealed flow is for.
type stage string

const (
	asking    stage = "ask"
	mailed    stage = "mail"
	signing   stage = "oidc"
	solving   stage = "puzzle"
	keeping   stage = "keep"
	returning stage = "return"
)

func newSealing(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *Site) seal(at stage, f *flow) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("seal form: %w", err)
	}
	sealed := s.sealing.Seal(nil, nil, text, []byte(at)) //nolint:gosec // the AEAD draws a nonce itself
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// open returns the flow that a site with the same secret sealed for a stage of an offer, or [errExpired].
func (s *Site) open(ctx context.Context, at stage, text string) (*flow, *Offer, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, nil, errExpired
	}
	opened, err := s.sealing.Open(nil, nil, sealed, []byte(at))
	if err != nil {
		return nil, nil, errExpired
	}
	f := &flow{}
	if err := json.Unmarshal(opened, f); err != nil {
		return nil, nil, fmt.Errorf("open form: %w", err)
	}
	o := s.offer(ctx, f.Offer)
	if o == nil || s.Now().Unix() > f.Until {
		return nil, nil, errExpired
	}
	return f, o, nil
}

// form returns the flow of a form for an offer.
func (s *Site) form(at stage, r *http.Request, o *Offer) (*flow, error) {
	f, of, err := s.open(r.Context(), at, r.PostFormValue("flow"))
	if err == nil && of.Name != o.Name {
		err = errExpired
	}
	return f, err
}

// ask reads what a room's page asks for, or returns [errForm] or [issuer.ErrLane].
func ask(r *http.Request, o *Offer, now time.Time) (*flow, error) {
	f := &flow{Offer: o.Name, Fragment: r.PostFormValue("response") == "fragment", Until: now.Add(flowLife).Unix(),
		IsLot: r.PostFormValue("for") == "lot"}
	if o.Key != nil {
		var err error
		f.Request.Blinded, err = hex.DecodeString(r.PostFormValue("blinded"))
		if err != nil || len(f.Request.Blinded) != o.Key.Size() || !f.Fragment { // only a script can use the response
			return nil, errForm
		}
		return f, nil
	}
	ticket, err := fairness.ParseTicket(r.PostFormValue("ticket"))
	if err != nil {
		return nil, errForm
	}
	f.Request.Ticket, f.Request.Lane = ticket, r.PostFormValue("lane")
	for _, lane := range o.Lanes {
		if lane == f.Request.Lane {
			return f, nil
		}
	}
	return nil, issuer.ErrLane
}

// finish issues a credential to an account and sends the visitor back to the room with it.
func (s *Site) finish(w http.ResponseWriter, r *http.Request, o *Offer, f *flow, account string) error {
	issued, err := s.Issuer.Issue(o.Offer, account, f.Request)
	if err != nil {
		return err
	}
	s.Log.Info("issued", "offer", o.Name, "again", issued.Again)
	evidence, ticket := hex.EncodeToString(issued.Evidence), fairness.Ticket(f.Request.Ticket).String()
	if o.Key != nil {
		return s.leave(w, r, o, url.Values{"blind_signature": {o.Method + " " + evidence}})
	}
	nullifier := hex.EncodeToString(issued.Nullifier)
	if f.Fragment {
		text := strings.Join([]string{o.Method, nullifier, evidence}, " ")
		return s.leave(w, r, o, url.Values{"credential": {text}, "ticket": {ticket}})
	}
	s.show(w, r, http.StatusOK, &view{Page: "done", Offer: o, IsLot: f.IsLot, Hidden: [][2]string{
		{"ticket", ticket}, {"lane", f.Request.Lane}, {"method", o.Method}, {"nullifier", nullifier},
		{"evidence", evidence}}})
	return nil
}

// leave redirects to the room's page with values in its fragment.
func (s *Site) leave(w http.ResponseWriter, r *http.Request, o *Offer, values url.Values) error {
	to := *o.RoomURL
	to.Fragment, to.RawFragment = "", ""
	w.Header().Set("Content-Security-Policy", o.returns()) // browsers check it for redirected forms
	//nolint:gosec // the configuration names the room; only the fragment depends on the request
	http.Redirect(w, r, to.String()+"#"+values.Encode(), http.StatusSeeOther)
	return nil
}

// secret returns a random text of 128 bits.
func secret() string { return rand.Text() }
