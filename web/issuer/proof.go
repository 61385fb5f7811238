package issuer

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/web/issuer/puzzle"
	"github.com/proofline/proofline/web/limit"
)

// unit separates the parts of an account.
const unit = "\x1f"

// enter receives a visitor from the room's page and asks for a proof.
func (s *Site) enter(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := ask(r, o, s.Now())
	if err != nil {
		return err
	}
	v := &view{Page: string(o.Proof), Offer: o}
	switch o.Proof {
	case ByList:
		v.Fields = o.fields(nil)
	case ByOIDC:
		if v.Link, err = s.signIn(w, r, f); err != nil {
			return err
		}
		v.Provider = s.Provider.Name
	case ByCaptcha:
		v.Captcha = s.Captcha
	case ByMail:
	case ByPuzzle:
		if v, err = s.newPuzzle(r, o, f, puzzle.Words); err != nil {
			return err
		}
	}
	if v.Flow == "" {
		v.Flow, err = s.seal(asking, f)
	}
	if err != nil {
		return err
	}
	s.show(w, r, http.StatusOK, v)
	return nil
}

// prove receives what a visitor typed in, values of a list or an address, or the response of a CAPTCHA.
func (s *Site) prove(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(asking, r, o)
	if err != nil {
		return err
	}
	switch o.Proof {
	case ByList:
		values := make([]string, len(o.List.Fields))
		for i := range values {
			values[i] = r.PostFormValue(fieldName(i))
		}
		account, ok := o.List.Account(values...)
		if err := s.attempt(r, ok, errNotKnown); err != nil {
			return &retry{err, &view{Page: "list", Fields: o.fields(values)}}
		}
		return s.finish(w, r, o, f, account)
	case ByMail:
		return s.sendCode(w, r, o, f)
	case ByCaptcha:
		account, err := s.solved(r, o)
		if err != nil {
			return &retry{err, s.widget(o)}
		}
		return s.finish(w, r, o, f, account)
	case ByOIDC, ByPuzzle:
	}
	return errForm
}

// attempt charges a network for an attempt, unless it succeeds. It returns why, if it counts as failed: the network
// has used up its attempts, or failed.
func (s *Site) attempt(r *http.Request, ok bool, failed error) error {
	addr := s.Clients.Of(r)
	if err := s.Limits.Take(addr, limit.Passes, 1); err != nil {
		return err
	}
	if !ok {
		return failed
	}
	s.Limits.GiveBack(addr, limit.Passes, 1)
	return nil
}

func fieldName(i int) string { return "field" + strconv.Itoa(i) }

// fields returns the fields of the form for the offer's list, with the values that were typed, if any.
func (o *Offer) fields(values []string) []field {
	list := make([]field, len(o.List.Fields))
	for i, label := range o.List.Fields {
		if o.List.IsCodes {
			label = ""
		}
		list[i] = field{Name: fieldName(i), Label: label}
		if values != nil {
			list[i].Value = values[i]
		}
	}
	return list
}

// sendCode sends a code to an address. Whether the address is on the offer's list shows only in its mailbox.
func (s *Site) sendCode(w http.ResponseWriter, r *http.Request, o *Offer, f *flow) error {
	again := &view{Page: "mail", Address: r.PostFormValue("address")}
	address, ok := issuer.NormalAddress(again.Address)
	if !ok || !o.isIn(address) {
		return &retry{errAddress, again}
	}
	if err := s.Limits.Take(s.Clients.Of(r), limit.Passes, 1); err != nil {
		return &retry{err, again}
	}
	if !s.post.mayWrite(address) {
		return &retry{errOften, again}
	}
	f.Address, f.Code, f.IsKnown = address, issuer.NewCode(), o.has(address)
	flow, err := s.seal(mailed, f)
	if err != nil {
		return err
	}
	if f.IsKnown {
		words := s.words.of(r)
		if err := s.post.send(address, words.say("mail.subject", "name", s.nameFor(o)),
			words.say("mail.text", "name", s.nameFor(o), "code", f.Code, "room", o.RoomURL.String())); err != nil {
			return err
		}
	}
	s.show(w, r, http.StatusOK, &view{Page: "code", Offer: o, Flow: flow, Address: address})
	return nil
}

// code receives the code that was sent to an address.
func (s *Site) code(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(mailed, r, o)
	if err != nil {
		return err
	}
	typed := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(r.PostFormValue("code")))
	want := strings.ReplaceAll(f.Code, "-", "")
	ok := subtle.ConstantTimeCompare([]byte(typed), []byte(want)) == 1 && f.IsKnown
	if err := s.attempt(r, ok, errCode); err != nil {
		return &retry{err, &view{Page: "code", Address: f.Address}}
	}
	return s.isProven(w, r, o, f, "mail"+unit+f.Address, f.Address)
}

// isIn reports whether an address is in a domain of the offer.
func (o *Offer) isIn(address string) bool {
	return len(o.Domains) == 0 || slices.Contains(o.Domains, address[strings.LastIndexByte(address, '@')+1:])
}

// has reports whether the offer's list, if it has one, has an address.
func (o *Offer) has(address string) bool {
	if o.List == nil {
		return true
	}
	_, ok := o.List.Account(address)
	return ok
}
