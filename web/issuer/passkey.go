package issuer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/proofline/proofline/fairness/credential/issuer"
)

// A passkey is a way back to an account that was proven by mail or OpenID Connect, and the account stays what counts:
// its nullifier is the same. A program makes as many passkeys as it likes, so they must not be accounts.

// passkeys are the pages that make passkeys and take them.
type passkeys struct {
	*Site
	authn *webauthn.WebAuthn
}

// holder is an account as WebAuthn sees it.
type holder struct {
	id    []byte
	name  string // that the device shows
	owned []webauthn.Credential
}

func (h *holder) WebAuthnID() []byte                         { return h.id }
func (h *holder) WebAuthnName() string                       { return h.name }
func (h *holder) WebAuthnDisplayName() string                { return h.name }
func (h *holder) WebAuthnCredentials() []webauthn.Credential { return h.owned }

func (s passkeys) holder(account, name string, owned ...webauthn.Credential) *holder {
	return &holder{s.Issuer.Derive("passkey user", account), name, owned}
}

func (c *Config) newWebAuthn() (*webauthn.WebAuthn, error) {
	if _, err := netip.ParseAddr(c.URL.Hostname()); err == nil {
		return nil, fmt.Errorf("passkeys need a host with a name, not %s", c.URL.Hostname())
	}
	w, err := webauthn.New(&webauthn.Config{RPID: c.URL.Hostname(), RPDisplayName: c.Name,
		RPOrigins: []string{origin(c.URL)}})
	if err != nil {
		return nil, fmt.Errorf("passkeys for %s: %w", c.URL.Hostname(), err)
	}
	return w, nil
}

// isProven receives a visitor who has proven an account, and offers to save a passkey if the offer has them. address
// is the one that was proven, too; empty: none.
func (s *Site) isProven(w http.ResponseWriter, r *http.Request, o *Offer, f *flow, account, address string) error {
	if !o.Passkeys {
		return s.finish(w, r, o, f, account)
	}
	f.Account, f.Address, f.Code = account, address, ""
	v, err := s.passkeys.keepPage(f)
	if err != nil {
		return err
	}
	v.Offer = o
	s.show(w, r, http.StatusOK, v)
	return nil
}

// nameOf is the name of an account on the visitor's device.
func (s passkeys) nameOf(f *flow) string {
	if f.Address != "" {
		return f.Address
	}
	return s.Provider.Name
}

// keepPage is the page that offers to save a passkey.
func (s passkeys) keepPage(f *flow) (*view, error) {
	options, session, err := s.authn.BeginRegistration(s.holder(f.Account, s.nameOf(f)),
		webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementRequired),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation))
	if err != nil {
		return nil, fmt.Errorf("offer a passkey: %w", err)
	}
	return s.ceremony("keep", keeping, f, options.Response, session)
}

// ceremony returns a page on which the browser turns to a device, with what it needs for that.
func (s passkeys) ceremony(page string, at stage, f *flow, options any, session *webauthn.SessionData) (*view, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("write options: %w", err)
	}
	if f.Session, err = json.Marshal(session); err != nil {
		return nil, fmt.Errorf("write session: %w", err)
	}
	sealed, err := s.seal(at, f)
	if err != nil {
		return nil, err
	}
	return &view{Page: page, Flow: sealed, Options: string(text)}, nil
}

// ceremonyPolicy returns the Content-Security-Policy of such a page: it has a script of this site, and no other.
func (s passkeys) ceremonyPolicy(o *Offer) string {
	return policy(ownStyles+"; script-src "+origin(s.URL)+s.URL.Path+"/passkey.js", "'self' "+origin(o.RoomURL))
}

// keep saves a passkey, if the visitor made one, and gives the account its credential.
func (s passkeys) keep(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(keeping, r, o)
	if err != nil {
		return err
	}
	if made := r.PostFormValue("passkey"); made != "" {
		if err := s.keepPasskey(f, made); err != nil {
			s.Log.Info("a passkey was not saved", "offer", o.Name, "err", err)
			v, again := s.keepPage(f)
			if again != nil {
				return again
			}
			return &retry{err, v}
		}
		s.Log.Info("a passkey was saved", "offer", o.Name)
	}
	return s.finish(w, r, o, f, f.Account)
}

func (s passkeys) keepPasskey(f *flow, made string) error {
	var session webauthn.SessionData
	if err := json.Unmarshal(f.Session, &session); err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(made))
	if err != nil {
		return fmt.Errorf("%w: %w", errPasskey, err)
	}
	credential, err := s.authn.CreateCredential(s.holder(f.Account, s.nameOf(f)), session, parsed)
	if err != nil {
		return fmt.Errorf("%w: %w", errPasskey, err)
	}
	credential.Attestation = webauthn.CredentialAttestation{} // says which device it is
	text, err := json.Marshal(credential)
	if err != nil {
		return fmt.Errorf("write passkey: %w", err)
	}
	return s.Issuer.KeepPasskey(credential.ID, issuer.Passkey{Account: f.Account, Address: f.Address, Credential: text},
		s.Now())
}

// passkey shows the page on which a visitor comes back with a passkey.
func (s passkeys) passkey(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(asking, r, o)
	if err != nil {
		return err
	}
	if !o.Passkeys {
		return errForm
	}
	v, err := s.passkeyPage(f)
	if err != nil {
		return err
	}
	v.Offer = o
	s.show(w, r, http.StatusOK, v)
	return nil
}

func (s passkeys) passkeyPage(f *flow) (*view, error) {
	options, session, err := s.authn.BeginDiscoverableLogin()
	if err != nil {
		return nil, fmt.Errorf("ask for a passkey: %w", err)
	}
	return s.ceremony("passkey", returning, f, options.Response, session)
}

// comeBack gives a credential to the account of a passkey.
func (s passkeys) comeBack(w http.ResponseWriter, r *http.Request, o *Offer) error {
	f, err := s.form(returning, r, o)
	if err != nil {
		return err
	}
	known, err := s.known(f, r.PostFormValue("passkey"))
	if err == nil && !o.admits(known) {
		err = errPasskey
	}
	if err = s.attempt(r, err == nil, err); err != nil {
		v, again := s.passkeyPage(f)
		if again != nil {
			return again
		}
		return &retry{err, v}
	}
	return s.finish(w, r, o, f, known.Account)
}

// known returns the passkey with which a browser has signed, or [errPasskey].
func (s passkeys) known(f *flow, signed string) (p issuer.Passkey, err error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(f.Session, &session); err != nil {
		return p, fmt.Errorf("read session: %w", err)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(signed))
	if err != nil {
		return p, fmt.Errorf("%w: %w", errPasskey, err)
	}
	if p, err = s.Issuer.Passkey(parsed.RawID); errors.Is(err, issuer.ErrNoPasskey) {
		return p, errPasskey
	}
	if err != nil {
		return p, err
	}
	var credential webauthn.Credential
	if err := json.Unmarshal(p.Credential, &credential); err != nil {
		return p, fmt.Errorf("read passkey: %w", err)
	}
	_, err = s.authn.ValidateDiscoverableLogin(func(id, user []byte) (webauthn.User, error) {
		h := s.holder(p.Account, "", credential)
		if !bytes.Equal(user, h.id) || !bytes.Equal(id, credential.ID) {
			return nil, errPasskey
		}
		return h, nil
	}, session, parsed)
	if err != nil {
		return p, fmt.Errorf("%w: %w", errPasskey, err)
	}
	return p, s.Issuer.UsedPasskey(parsed.RawID, s.Now())
}

// admits reports whether a passkey's account was proven as the offer wants it, and is one that may have a credential.
func (o *Offer) admits(p issuer.Passkey) bool {
	if !strings.HasPrefix(p.Account, string(o.Proof)+unit) {
		return false
	}
	return len(o.Domains) == 0 && o.List == nil || p.Address != "" && o.isIn(p.Address) && o.has(p.Address)
}
