package issuer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/web/limit"
)

// Provider is an OpenID Connect provider. Its redirect URI for this site is the site's URL with [CallbackPath].
type Provider struct {
	Issuer       string // issuer URL
	ClientID     string
	ClientSecret string
	Name         string // for visitors

	mu      sync.Mutex
	config  *oauth2.Config // nil: not fetched yet
	verify  *oidc.IDTokenVerifier
	retryAt time.Time // earliest time of the next attempt, after a failure
}

// CallbackPath is the redirect URI, relative to the site's URL.
const CallbackPath = "/callback"

const (
	providerTimeout = 10 * time.Second // of one request to the provider
	providerPause   = 10 * time.Second // after the provider failed to answer
)

var providerClient = &http.Client{Timeout: providerTimeout}

// discover returns the provider's configuration. It is fetched when first needed, so that a site can start while the
// provider is down.
func (p *Provider) discover(ctx context.Context, redirect string, now func() time.Time,
) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config != nil {
		return p.config, p.verify, nil
	}
	if now().Before(p.retryAt) {
		return nil, nil, errAway
	}
	// The provider fetches keys later with this context.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), providerClient), p.Issuer)
	if err != nil {
		p.retryAt = now().Add(providerPause)
		return nil, nil, fmt.Errorf("%w: %w", errAway, err)
	}
	p.config = &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: redirect, Scopes: []string{oidc.ScopeOpenID, "email"}}
	p.verify = found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: now})
	return p.config, p.verify, nil
}

// Ask asks for the provider's configuration, and returns an error if it does not answer.
func (p *Provider) Ask(ctx context.Context) error {
	address := strings.TrimSuffix(p.Issuer, "/") + "/.well-known/openid-configuration"
	return reach(ctx, providerClient, address, http.StatusBadRequest)
}

// reach requests an address, and returns an error if there is no response, or one with a status from wrong on.
func reach(ctx context.Context, client *http.Client, address string, wrong int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return outbound.Hide(ctx, err)
	}
	got, err := client.Do(r) //nolint:gosec // the operator configured it
	if err != nil {
		return outbound.Hide(ctx, err)
	}
	_ = got.Body.Close() // not read
	if got.StatusCode >= wrong {
		return fmt.Errorf("it responded with %d %s", got.StatusCode, http.StatusText(got.StatusCode))
	}
	return nil
}

func (s *Site) provider(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	config, verify, err := s.Provider.discover(ctx, s.URL.String()+CallbackPath, s.Now)
	if err != nil {
		s.Log.Warn("cannot reach the provider", "issuer", s.Provider.Issuer, "err", err)
	}
	return config, verify, err
}

// CookieName is the name of the only cookie, one that browsers accept only from this very host, where that is possible.
func (s *Site) CookieName() string {
	if s.URL.Scheme == "https" {
		return "__Host-flow"
	}
	return "flow"
}

func (s *Site) setCookie(w http.ResponseWriter, value string, life time.Duration) {
	//nolint:gosec // an http address is one of this machine, for tests
	http.SetCookie(w, &http.Cookie{Name: s.CookieName(), Value: value, Path: "/", MaxAge: int(life / time.Second),
		Secure: s.URL.Scheme == "https", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// signIn returns the address at which a visitor signs in, and sets the cookie that the browser keeps meanwhile.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request, f *flow) (string, error) {
	config, _, err := s.provider(r.Context())
	if err != nil {
		return "", err
	}
	signed := *f
	signed.State, signed.Nonce, signed.Verifier = secret(), secret(), oauth2.GenerateVerifier()
	cookie, err := s.seal(signing, &signed)
	if err != nil {
		return "", err
	}
	s.setCookie(w, cookie, flowLife)
	return config.AuthCodeURL(signed.State, oidc.Nonce(signed.Nonce), oauth2.S256ChallengeOption(signed.Verifier)), nil
}

// callback receives a visitor from the provider.
func (s *Site) callback(w http.ResponseWriter, r *http.Request) {
	var f *flow
	var o *Offer
	err := s.Limits.Take(s.Clients.Of(r), limit.Pages, 1)
	if err == nil {
		f, o, err = s.signedIn(r)
	}
	if err == nil && r.URL.Query().Get("error") != "" {
		err = errProvider
	}
	if err != nil {
		s.fail(w, r, o, err)
		return
	}
	s.setCookie(w, "", -time.Second) // it is good once
	account, address, err := s.identify(r.Context(), o, f, r.URL.Query().Get("code"))
	if err == nil {
		err = s.isProven(w, r, o, f, account, address)
	}
	if err != nil {
		s.fail(w, r, o, err)
	}
}

// signedIn returns the flow of the browser that the provider sent back.
func (s *Site) signedIn(r *http.Request) (*flow, *Offer, error) {
	cookie, err := r.Cookie(s.CookieName())
	if err != nil || s.Provider == nil {
		return nil, nil, errExpired
	}
	f, o, err := s.open(r.Context(), signing, cookie.Value)
	if err == nil && (o.Proof != ByOIDC || r.URL.Query().Get("state") != f.State) {
		err = errExpired
	}
	return f, o, err
}

// identify trades an authorization code for an account and its verified address, if it has one.
func (s *Site) identify(ctx context.Context, o *Offer, f *flow, code string) (account, address string, err error) {
	config, verifier, err := s.provider(ctx)
	if err != nil {
		return "", "", err
	}
	asking, cancel := context.WithTimeout(oidc.ClientContext(ctx, providerClient), providerTimeout)
	defer cancel()
	granted, err := config.Exchange(asking, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		s.Log.Warn("cannot exchange the provider's code", "err", err)
		return "", "", errProvider
	}
	raw, _ := granted.Extra("id_token").(string)
	token, err := verifier.Verify(asking, raw)
	if err != nil || token.Nonce != f.Nonce {
		s.Log.Warn("the provider's token is not valid", "err", err)
		return "", "", errProvider
	}
	var said struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := token.Claims(&said); err != nil {
		return "", "", errProvider
	}
	address, ok := issuer.NormalAddress(said.Email)
	if !ok || !said.Verified {
		address = ""
	}
	if o.List != nil || len(o.Domains) > 0 {
		if address == "" || !o.isIn(address) || !o.has(address) {
			return "", "", errAddress
		}
	}
	return "oidc" + unit + token.Issuer + unit + token.Subject, address, nil
}
