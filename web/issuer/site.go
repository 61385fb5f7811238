// Package issuer serves the pages on which visitors prove something to an issuer of credentials and get one for
// their place in a room. README.md has the forms by which a room's page sends visitors here and gets them back.
//
// The pages work without scripts, but for a CAPTCHA and passkeys, and keep no sessions: what a visitor asks for travels
// in the forms themselves, sealed ([flow]). A visitor comes in by a form of the room's page, which the browser's Origin
// header shows; otherwise any site could have a visitor's account vouch for a stranger's ticket. Credentials go back in
// the fragment of the room's address, or in a form: never in a part of a URL that servers see.
package issuer

import (
	"cmp"
	"context"
	"crypto/cipher"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/web/client"
	"github.com/proofline/proofline/web/limit"
)

// Offer is what an issuer vouches for in one room, and how visitors prove it.
type Offer struct {
	*issuer.Offer
	RoomURL *url.URL // of the room's page, where visitors come from and return to
	// Proof is how a visitor proves an account. [ByList] needs a List.
	Proof Proof
	// List has the codes or members that visitors type in or, for the other proofs, the addresses that
	// may have a credential; nil: all. [ByCaptcha] has none.
	List *issuer.List
	// Domains are the domains of addresses that may have a credential; none: all.
	Domains []string
	// Passkeys means that visitors can save a passkey for their account, and come back with it. For [ByMail] and
	// [ByOIDC].
	Passkeys bool
	// Until is when the offer ends; zero: never. Counted is until when it is counted, as long as its records are kept;
	// zero: always.
	Until, Counted time.Time
	// Organizer is the name that visitors see; empty: the site's.
	Organizer string
	Title     string // of the room; empty: not known
	Brand     Brand  // of the room
	// IsRooms means that the program that serves the room serves these pages, too.
	IsRooms bool
}

// Brand is how an offer's pages look: paths on this site's host, or empty.
type Brand struct {
	CSS        string // style sheet
	Logo, Dark string // logo, and another one for dark pages
}

// Proof is a way to prove an account.
type Proof string

// The ways to prove an account.
const (
	ByList Proof = "list" // values of a list of codes or members
	ByMail Proof = "mail" // a code sent to an address
	ByOIDC Proof = "oidc" // sign-in with OpenID Connect
	// ByPuzzle takes a small puzzle, with no account behind it: what it proves is that somebody took some trouble.
	ByPuzzle  Proof = "puzzle"
	ByCaptcha Proof = "captcha" // a check of a CAPTCHA service, which has no account
)

// Mailer sends mail.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// Config configures a site. All fields but Find, Provider, Mailer and Captcha are required.
type Config struct {
	Issuer *issuer.Issuer
	URL    *url.URL // public address; its path is that of all pages
	Name   string   // of the organization, for visitors
	Offers []*Offer
	// Find returns other offers by name, without passkeys; nil: there is none of that name, or no other.
	Find     func(ctx context.Context, name string) *Offer
	Provider *Provider // for [ByOIDC]
	Mailer   Mailer    // for [ByMail]
	Captcha  *Captcha  // for [ByCaptcha]
	Clients  *client.Addresses
	// Limits has budgets of [limit.Pages], of [limit.Passes] for wrong codes, members, addresses, puzzles and checks,
	// and of [limit.Joins] for solved puzzles and checks.
	Limits *limit.Limits
	Now    func() time.Time
	Log    *slog.Logger // gets no personal data
}

// Site is the pages of an issuer.
type Site struct {
	Config
	sealing  cipher.AEAD
	passkeys passkeys
	offers   map[string]*Offer
	post     *postOffice
	sent     *sentForms
	words    *words
	mux      *http.ServeMux
}

// Default limits of a network, each a minute: of wrong codes, members and puzzles, and of mails; of pages; and of
// solved puzzles and checks.
const (
	DefaultAttempts = 10
	DefaultPages    = 1000
	DefaultSolved   = 120
)

// reserved are addresses of the site that are no offers.
var reserved = []string{"callback", "healthz", "issued"}

// maxBody is the maximum size of a form in bytes.
const maxBody = 16 << 10

// New returns the site. [Site.Close] must be called when it serves no longer.
func New(c Config) (*Site, error) {
	s := &Site{Config: c, offers: map[string]*Offer{}, mux: http.NewServeMux()}
	s.passkeys.Site = s
	var err error
	if s.sealing, err = newSealing(c.Issuer.Derive("flow")); err != nil {
		return nil, err
	}
	if s.words, err = newWords(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.Offers, func(o *Offer) bool { return o.Passkeys }) {
		if s.passkeys.authn, err = c.newWebAuthn(); err != nil {
			return nil, err
		}
	}
	for _, o := range c.Offers {
		switch {
		case s.offers[o.Name] != nil || slices.Contains(reserved, o.Name):
			return nil, fmt.Errorf("offer %s: the name is taken", o.Name)
		case o.Proof == ByList && o.List == nil:
			return nil, fmt.Errorf("offer %s: a list is missing", o.Name)
		case o.Proof == ByMail && c.Mailer == nil:
			return nil, fmt.Errorf("offer %s: a mail server is missing", o.Name)
		case o.Proof == ByOIDC && c.Provider == nil:
			return nil, fmt.Errorf("offer %s: an OpenID Connect provider is missing", o.Name)
		case o.Proof == ByPuzzle && (o.List != nil || len(o.Domains) > 0):
			return nil, fmt.Errorf("offer %s: a puzzle has no list and no domains", o.Name)
		case o.Proof == ByCaptcha && c.Captcha == nil:
			return nil, fmt.Errorf("offer %s: a CAPTCHA service is missing", o.Name)
		case o.Proof == ByCaptcha && (o.Key != nil || o.List != nil || len(o.Domains) > 0):
			return nil, fmt.Errorf("offer %s: a CAPTCHA has no account that a list, domains or a blind key could be for", o.Name)
		case o.Passkeys && o.Proof != ByMail && o.Proof != ByOIDC:
			return nil, fmt.Errorf("offer %s: passkeys are for the proofs mail and oidc", o.Name)
		case o.Proof != ByList && o.List != nil && len(o.List.Fields) != 1:
			return nil, fmt.Errorf("offer %s: a list of addresses has one field", o.Name)
		}
		s.offers[o.Name] = o.withRules()
	}
	s.post = newPostOffice(c.Mailer, c.Log, c.Now)
	s.sent = newSentForms(c.Now())
	s.route()
	return s, nil
}

// Purpose is that of the key which signs for a proof. Behind puzzles and checks is no account, so they have keys of
// their own, and pass for no account.
func (p Proof) Purpose() string {
	if p == ByPuzzle || p == ByCaptcha {
		return string(p)
	}
	return ""
}

// withRules makes a code, and a solved check, good for one place, and gives proofs without an account their keys.
func (o *Offer) withRules() *Offer {
	o.Once = o.Once || o.Proof == ByCaptcha || o.Proof == ByList && o.List.IsCodes
	o.Purpose = cmp.Or(o.Proof.Purpose(), o.Purpose)
	return o
}

// offer returns the offer with a name; nil if there is none.
func (s *Site) offer(ctx context.Context, name string) *Offer {
	if o := s.offers[name]; o != nil || s.Find == nil {
		if o != nil && o.Until.Before(s.Now()) && !o.Until.IsZero() {
			return nil
		}
		return o
	}
	if o := s.Find(ctx, name); o != nil {
		return o.withRules()
	}
	return nil
}

// Close waits until all mail was sent, or failed.
func (s *Site) Close() { s.post.close() }

//go:embed style.css passkey.js
var files embed.FS

func (s *Site) route() {
	own := origin(s.URL)
	type handler func(http.ResponseWriter, *http.Request, *Offer) error
	offered := func(handle handler, from func(*Offer) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			o := s.offer(r.Context(), r.PathValue("offer"))
			if o == nil {
				s.fail(w, r, nil, errUnknown)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			err := s.Limits.Take(s.Clients.Of(r), limit.Pages, 1)
			if err == nil && from != nil && r.Header.Get("Origin") != from(o) {
				err = errOrigin
			}
			if err == nil {
				err = handle(w, r, o)
			}
			if err != nil {
				s.fail(w, r, o, err)
			}
		}
	}
	ours := func(*Offer) string { return own }
	at := func(method, path string) string { return method + " " + s.URL.Path + path }
	s.mux.HandleFunc(at("GET", "/{$}"), s.home)
	s.mux.HandleFunc(at("GET", "/issued"), s.issued)
	s.mux.HandleFunc(at("GET", "/healthz"), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	for _, file := range []string{"/style.css", "/passkey.js"} {
		s.mux.Handle(at("GET", file), http.StripPrefix(s.URL.Path, http.FileServerFS(files)))
	}
	s.mux.HandleFunc(at("GET", CallbackPath), s.callback)
	s.mux.HandleFunc(at("GET", "/{offer}"), offered(s.about, nil))
	s.mux.HandleFunc(at("POST", "/{offer}"), offered(s.enter, func(o *Offer) string { return origin(o.RoomURL) }))
	s.mux.HandleFunc(at("POST", "/{offer}/prove"), offered(s.prove, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/code"), offered(s.code, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/puzzle"), offered(s.solve, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/captcha"), offered(s.captcha, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/passkey"), offered(s.passkeys.passkey, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/return"), offered(s.passkeys.comeBack, ours))
	s.mux.HandleFunc(at("POST", "/{offer}/keep"), offered(s.passkeys.keep, ours))
	s.mux.HandleFunc(at("GET", "/{offer}/issued"), offered(func(w http.ResponseWriter, _ *http.Request, o *Offer) error {
		return s.sendCount(w, []*issuer.Offer{o.Offer})
	}, nil))
}

// origin returns the origin of a URL as browsers write it.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}

// ServeHTTP implements [http.Handler].
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy(ownStyles, "'self'"))
	// A form to the room names this site, and nothing else of its address.
	h.Set("Referrer-Policy", "strict-origin")
	if s.URL.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	s.mux.ServeHTTP(w, r)
}

// ownStyles are the sources of all pages but those with a CAPTCHA or a passkey.
const ownStyles = "style-src 'self'"

// policy returns the Content-Security-Policy of a page that loads things from some sources, and whose forms go to some
// places.
func policy(sources, forms string) string {
	return "default-src 'none'; " + sources + "; base-uri 'none'; frame-ancestors 'none'; form-action " + forms
}

// returns is the policy of a page that leads back to an offer's room.
func (o *Offer) returns() string {
	allowed := policy(ownStyles, "'self' "+origin(o.RoomURL))
	if o.Brand.Logo != "" {
		allowed += "; img-src 'self'"
	}
	return allowed
}

// issued serves the signed count of all offers.
func (s *Site) issued(w http.ResponseWriter, r *http.Request) {
	err := s.Limits.Take(s.Clients.Of(r), limit.Pages, 1)
	var offers []*issuer.Offer
	for _, o := range s.Offers {
		if o.Counted.IsZero() || s.Now().Before(o.Counted) {
			offers = append(offers, o.Offer)
		}
	}
	if err == nil {
		err = s.sendCount(w, offers)
	}
	if err != nil {
		s.fail(w, r, nil, err)
	}
}

// sendCount sends a signed count.
func (s *Site) sendCount(w http.ResponseWriter, offers []*issuer.Offer) error {
	text, err := s.Issuer.Count(s.noteName(), offers, s.Now().UnixMilli())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(text) //nolint:gosec // text/plain, of names in policies
	return nil
}

// noteName is the name under which counts are signed.
func (s *Site) noteName() string { return s.URL.Host + s.URL.Path }

// Errors that visitors see.
var (
	errUnknown  = errors.New("no such offer")
	errOrigin   = errors.New("the form comes from another site")
	errForm     = errors.New("the form is incomplete")
	errExpired  = errors.New("the form has expired")
	errNotKnown = errors.New("no such code or member")
	errAddress  = errors.New("not an address that may have a credential")
	errCode     = errors.New("wrong code")
	errOften    = errors.New("too many mails to one address")
	errProvider = errors.New("the sign-in failed")
	errAway     = errors.New("the provider does not answer")
	errPuzzle   = errors.New("not what fits")
	errOver     = errors.New("the puzzle is over")
	errPasskey  = errors.New("not a passkey of an account that may have a credential")

	errCaptcha     = errors.New("the check was not solved")
	errCaptchaAway = errors.New("the CAPTCHA service does not answer")
)

// retry is an error after which a visitor can fill in the same form again.
type retry struct {
	error
	view *view
}

func (e *retry) Unwrap() error { return e.error }

// problems has the status and the message of each error.
var problems = []struct {
	err    error
	status int
	key    string
}{
	{errUnknown, http.StatusNotFound, "error.unknown"},
	{issuer.ErrForgotten, http.StatusGone, "error.unknown"},
	{errOrigin, http.StatusForbidden, "error.origin"},
	{errForm, http.StatusBadRequest, "error.form"},
	{errExpired, http.StatusGone, "error.expired"},
	{errNotKnown, http.StatusForbidden, "error.not_known"},
	{errAddress, http.StatusForbidden, "error.address"},
	{errCode, http.StatusForbidden, "error.code"},
	{errOften, http.StatusTooManyRequests, "error.often"},
	{errProvider, http.StatusForbidden, "error.provider"},
	{errAway, http.StatusServiceUnavailable, "error.away"},
	{errPuzzle, http.StatusForbidden, "error.puzzle"},
	{errOver, http.StatusGone, "error.over"},
	{errPasskey, http.StatusForbidden, "error.passkey"},
	{issuer.ErrNoPasskey, http.StatusForbidden, "error.passkey"},
	{issuer.ErrPasskeys, http.StatusConflict, "error.passkeys"},
	{errCaptcha, http.StatusForbidden, "error.captcha"},
	{errCaptchaAway, http.StatusServiceUnavailable, "error.captcha_away"},
	{issuer.ErrVoid, http.StatusGone, "error.void"},
	{issuer.ErrUsed, http.StatusConflict, "error.used"},
	{issuer.ErrLimit, http.StatusConflict, "error.limit"},
	{issuer.ErrLane, http.StatusBadRequest, "error.form"},
	{issuer.ErrBlinded, http.StatusBadRequest, "error.form"},
}

// fail answers with a page that explains an error. o may be nil.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, o *Offer, err error) {
	status, key := http.StatusInternalServerError, "error.internal"
	for _, p := range problems {
		if errors.Is(err, p.err) {
			status, key = p.status, p.key
			break
		}
	}
	if reached, ok := errors.AsType[*limit.Error](err); ok {
		status, key = http.StatusTooManyRequests, "error.limited"
		w.Header().Set("Retry-After", fmt.Sprint(int(reached.Wait.Seconds())+1))
	}
	name := ""
	if o != nil {
		name = o.Name
	}
	v := &view{Page: "error"}
	if again, ok := errors.AsType[*retry](err); ok { // the form again, as it was
		v = again.view
		v.Flow = cmp.Or(v.Flow, r.PostFormValue("flow"))
	}
	v.Offer, v.Text = o, key
	if status == http.StatusInternalServerError {
		s.Log.Error("request failed", "offer", name, "err", err)
	} else if o != nil {
		s.Log.Info("refused", "offer", name, "reason", key)
	}
	s.show(w, r, status, v)
}
