package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// OIDCConfig is how people sign in with OpenID Connect.
type OIDCConfig struct {
	Issuer       string // URL
	ClientID     string
	ClientSecret string
	Name         string // of the issuer, for people; empty: its host
	// Domains are those whose people get an account when they first sign in, and
	// the role that they have then in Org.
	Domains map[string]Role
	Org     uuid.UUID // the zero value: [MainOrg]
}

// OIDCPath is where the issuer sends people back to, below the server's address.
const OIDCPath = "/console/oidc/callback"

// Times of a sign-in by OpenID Connect.
const (
	OIDCLife      = 10 * time.Minute // at the issuer
	issuerTimeout = 10 * time.Second // of one request to it
	issuerPause   = 10 * time.Second // after it did not answer
	authFresh     = 5 * time.Minute  // how new a proof is that confirms a session
)

// OIDCStart is where to send somebody, and what the browser keeps in a cookie
// until it comes back, for [OIDCLife].
type OIDCStart struct {
	URL    string
	Cookie string
}

// oidcFlow is what is in the cookie.
type oidcFlow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"` // PKCE
	Session  uuid.UUID `json:"session"`  // that is to be confirmed; zero: sign in
	Person   uuid.UUID `json:"person"`   // of that session
	Until    int64     `json:"until"`    // Unix time
}

// OIDCName returns the name of the issuer for people; false when sign-in by
// OpenID Connect is not configured.
func (a *Accounts) OIDCName() (string, bool) {
	if a.OIDC == nil {
		return "", false
	}
	if a.OIDC.Name != "" {
		return a.OIDC.Name, true
	}
	u, err := url.Parse(a.OIDC.Issuer)
	return u.Host, err == nil
}

// StartOIDC begins a sign-in, or with a session the confirmation of who it is:
// [ErrNoOIDC], [ErrOIDC] when the issuer does not answer.
func (a *Accounts) StartOIDC(ctx context.Context, s *Session) (OIDCStart, error) {
	config, _, err := a.issuer(ctx)
	if err != nil {
		return OIDCStart{}, err
	}
	state, _, err := a.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	nonce, _, err := a.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	verifier, _, err := a.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	flow := oidcFlow{State: state, Nonce: nonce, Verifier: verifier, Until: a.Now().Add(OIDCLife).Unix()}
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	if s != nil {
		flow.Session, flow.Person = s.ID, s.Person
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
	}
	cookie, err := a.sealJSON(sealOIDC, flow)
	return OIDCStart{config.AuthCodeURL(state, options...), cookie}, err
}

// claims are what an ID token says beside what is verified always.
type claims struct {
	Email    string `json:"email"`
	Verified bool   `json:"email_verified"`
	Name     string `json:"name"`
	AuthTime int64  `json:"auth_time"`
}

// FinishOIDC takes what the issuer sends people back with, and what the
// browser kept. An account whose person was never at the issuer before loses its
// password and its sessions to the one who is: [ErrOIDC], [ErrNoAccount], [ErrSignedOut] when it took too long.
func (a *Accounts) FinishOIDC(ctx context.Context, cookie string, query url.Values, c Client) (SignedIn, error) {
	var flow oidcFlow
	if err := a.openJSON(sealOIDC, cookie, &flow); err != nil || a.Now().Unix() > flow.Until {
		return SignedIn{}, ErrSignedOut
	}
	if query.Get("state") != flow.State {
		return SignedIn{}, ErrSignedOut
	}
	if problem := query.Get("error"); problem != "" {
		return SignedIn{}, fmt.Errorf("%w: it says %.100q", ErrOIDC, problem)
	}
	token, said, err := a.exchange(ctx, flow, query.Get("code"))
	if err != nil {
		return SignedIn{}, err
	}
	p, tookOver, err := a.identified(ctx, token, said, flow.Person)
	if err != nil {
		return SignedIn{}, err
	}
	switch {
	case flow.Session == uuid.Nil && p.Factor != nil:
		return a.pending(p, byOIDC)
	case flow.Session == uuid.Nil:
		in, err := a.open(ctx, p, c, byOIDC)
		in.TookOver = tookOver
		return in, err
	case p.ID != flow.Person || a.Now().Sub(time.Unix(said.AuthTime, 0)) > authFresh:
		return SignedIn{}, fmt.Errorf("%w anew: it was somebody else, or long ago", ErrOIDC)
	}
	rotated, err := a.rotate(ctx, flow.Session)
	return SignedIn{Token: rotated}, err
}

// exchange trades a code for an ID token, and verifies it.
func (a *Accounts) exchange(ctx context.Context, flow oidcFlow, code string) (*oidc.IDToken, claims, error) {
	var said claims
	config, verifier, err := a.issuer(ctx)
	if err != nil {
		return nil, said, err
	}
	asking, cancel := context.WithTimeout(oidc.ClientContext(ctx, issuerClient), issuerTimeout)
	defer cancel()
	granted, err := config.Exchange(asking, code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return nil, said, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	raw, _ := granted.Extra("id_token").(string)
	token, err := verifier.Verify(asking, raw)
	if err != nil {
		return nil, said, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	if token.Nonce != flow.Nonce {
		return nil, said, fmt.Errorf("%w: another nonce", ErrOIDC)
	}
	if err := token.Claims(&said); err != nil {
		return nil, said, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	return token, said, nil
}

// identified returns the person that an issuer vouches for: who signed in as
// that subject before, else who has the verified address, else somebody new if
// the domain is one of those that may.
//
// Addresses of accounts are not verified otherwise: whoever makes an invitation
// has its link, too. So the first sign-in by an issuer takes password and
// sessions away, unless it was begun in a session of that person: nobody keeps a
// way into an account that was made for somebody else's address. The second
// factor stays, so that the issuer alone is no way around it.
func (a *Accounts) identified(ctx context.Context, token *oidc.IDToken, said claims, signedIn uuid.UUID) (p pgaccount.Person, tookOver bool, err error) {
	p, err = a.Store.PersonByIdentity(ctx, token.Issuer, token.Subject)
	if !errors.Is(err, pgaccount.ErrNotFound) {
		return p, false, err
	}
	email, ok := NormalEmail(said.Email)
	if !ok || !said.Verified {
		return p, false, fmt.Errorf("%w: it gives no verified e-mail address", ErrOIDC)
	}
	p, err = a.Store.PersonByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		p, err = a.welcome(ctx, token, email, said.Name)
		return p, false, err
	}
	if err != nil {
		return p, false, err
	}
	link := a.Store.TakeOver
	if p.ID == signedIn {
		link = a.Store.AddIdentity
	}
	if err := link(ctx, p.ID, token.Issuer, token.Subject); errors.Is(err, pgaccount.ErrExists) {
		return p, false, fmt.Errorf("%w: this address belongs to another account there now", ErrOIDC)
	} else if err != nil {
		return p, false, err
	}
	if err := a.recordEverywhere(ctx, p, "identity.add", map[string]any{"issuer": token.Issuer}); err != nil {
		return p, false, err
	}
	now, err := a.Store.Person(ctx, p.ID)
	return now, p.Password != now.Password, err
}

// welcome makes an account for somebody whose domain may have one.
func (a *Accounts) welcome(ctx context.Context, token *oidc.IDToken, email, name string) (pgaccount.Person, error) {
	_, domain, _ := strings.Cut(email, "@")
	role, ok := a.OIDC.Domains[domain]
	if !ok {
		return pgaccount.Person{}, ErrNoAccount
	}
	id, err := a.newID()
	if err != nil {
		return pgaccount.Person{}, err
	}
	org := a.OIDC.Org
	if org == uuid.Nil {
		org = MainOrg
	}
	if name, ok = normalName(name); !ok {
		name = email
	}
	p := pgaccount.Person{ID: id, Email: email, Name: name, Created: a.Now()}
	if err := a.Store.AddIdentified(ctx, p, token.Issuer, token.Subject, org, string(role)); err != nil {
		return p, known(err)
	}
	by := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: org}
	return p, a.record(ctx, by, "member.join", p.Email, map[string]any{"role": string(role), "invited_by": token.Issuer})
}

// issuerClient talks to issuers.
var issuerClient = &http.Client{Timeout: issuerTimeout}

// provider is the issuer once it has answered.
type provider struct {
	mu     sync.Mutex
	config *oauth2.Config
	verify *oidc.IDTokenVerifier
	failed error
	again  time.Time // after failed
}

// issuer returns how to talk to the issuer. It is asked when it is first
// needed, so that a server starts without it.
func (a *Accounts) issuer(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	if a.OIDC == nil {
		return nil, nil, ErrNoOIDC
	}
	p := &a.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config != nil {
		return p.config, p.verify, nil
	}
	now := a.Now()
	if p.failed != nil && now.Before(p.again) {
		return nil, nil, p.failed
	}
	// Keys are fetched later, with this context.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), issuerClient), a.OIDC.Issuer)
	if err != nil {
		a.Log.Warn("identity provider does not answer", "issuer", a.OIDC.Issuer, "err", err)
		p.failed, p.again = fmt.Errorf("%w: it does not answer", ErrOIDC), now.Add(issuerPause)
		return nil, nil, p.failed
	}
	p.config = &oauth2.Config{
		ClientID: a.OIDC.ClientID, ClientSecret: a.OIDC.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: a.URL + OIDCPath, Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
	p.verify = found.Verifier(&oidc.Config{ClientID: a.OIDC.ClientID, Now: a.Now})
	return p.config, p.verify, nil
}
