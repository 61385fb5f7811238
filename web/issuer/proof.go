package issuer

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness/credential/issuer"
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
		v.Fields = o.List.Fields
	case ByOIDC:
		if v.Link, err = s.signIn(w, r, f); err != nil {
			return err
		}
		v.Provider = s.Provider.Name
	case ByMail:
	}
	if v.Flow, err = s.seal(asking, f); err != nil {
		return err
	}
	s.show(w, r, http.StatusOK, v)
	return nil
}

// prove receives what a visitor typed in: values of a list, or an address.
func (s *Site) prove(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(asking, r, o)
	if err != nil {
		return err
	}
	switch o.Proof {
	case ByList:
		values := make([]string, len(o.List.Fields))
		for i := range values {
			values[i] = r.PostFormValue("field" + string(rune('0'+i)))
		}
		return s.attempt(r, errNotKnown, func() bool {
			_, ok := o.List.Account(values...)
			return ok
		}, func() error {
			account, _ := o.List.Account(values...)
			return s.finish(w, r, o, f, account)
		})
	case ByMail:
		return s.sendCode(w, r, o, f)
	case ByOIDC:
	}
	return errForm
}

// attempt charges a network for attempts that fail, and does what follows one that succeeds.
func (s *Site) attempt(r *http.Request, failed error, try func() bool, then func() error) error {
	addr := s.Clients.Of(r)
	if err := s.Limits.Take(addr, limit.Passes, 1); err != nil {
		return err
	}
	if !try() {
		return failed
	}
	s.Limits.GiveBack(addr, limit.Passes, 1)
	return then()
}

// sendCode sends a code to an address. Whether the address is on the offer's list shows only in its mailbox.
func (s *Site) sendCode(w http.ResponseWriter, r *http.Request, o *Offer, f *flow) error {
	address, ok := issuer.NormalAddress(r.PostFormValue("address"))
	if !ok || !o.isIn(address) {
		return errAddress
	}
	if err := s.Limits.Take(s.Clients.Of(r), limit.Passes, 1); err != nil {
		return err
	}
	if !s.post.mayWrite(address) {
		return errOften
	}
	f.Address, f.Code, f.IsKnown = address, issuer.NewCode(), o.has(address)
	flow, err := s.seal(mailed, f)
	if err != nil {
		return err
	}
	if f.IsKnown {
		words := s.words.of(r)
		if err := s.post.send(address, words.say("mail.subject", "name", s.Name),
			words.say("mail.text", "name", s.Name, "code", f.Code, "room", o.RoomURL.String())); err != nil {
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
	return s.attempt(r, errCode, func() bool {
		typed := strings.ToUpper(strings.Join(strings.FieldsFunc(r.PostFormValue("code"), func(r rune) bool {
			return r == '-' || r == ' '
		}), ""))
		want := strings.ReplaceAll(f.Code, "-", "")
		return f.IsKnown && subtle.ConstantTimeCompare([]byte(typed), []byte(want)) == 1
	}, func() error { return s.finish(w, r, o, f, "mail"+unit+f.Address) })
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
