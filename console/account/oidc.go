package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// OIDCConfig configures sign-in by OpenID Connect.
type OIDCConfig struct {
	Issuer       string // issuer URL
	ClientID     string
	ClientSecret string
	Name         string // display name of the issuer; empty: its host
	// Domains maps e-mail domains to roles in Org. People with an address there get an account, with
	// that role, at their first sign-in.
	Domains map[string]Role
	Org     uuid.UUID // zero value: [MainOrg]
}

// OIDCPath is the redirect URI, relative to the server's URL.
const OIDCPath = "/console/oidc/callback"

// Timeouts of sign-in by OpenID Connect.
const (
	OIDCLife      = 10 * time.Minute // time to sign in at the issuer
	issuerTimeout = 10 * time.Second // time limit of one request to the issuer
	issuerPause   = 10 * time.Second // pause after the issuer failed to answer
	maxAuthAge    = 5 * time.Minute  // maximum age of a sign-in at the issuer that confirms a session
)

// OIDCStart is the issuer's URL to redirect the browser to, and a cookie that the browser keeps for
// [OIDCLife].
type OIDCStart struct {
	URL    string
	Cookie string
}

// oidcFlow is the content of the cookie.
type oidcFlow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"` // PKCE
	Session  uuid.UUID `json:"session"`  // session to confirm; zero: sign in
	Person   uuid.UUID `json:"person"`   // person of that session; zero: sign in
	Until    int64     `json:"until"`    // Unix time
}

// OIDC signs people in by OpenID Connect.
type OIDC struct {
	config   *OIDCConfig // nil: not configured
	people   *pgaccount.People
	sessions *Sessions
	starter  *starter
	sealer   *sealer
	activity *recorder
	random   random
	url      string
	now      func() time.Time
	log      *slog.Logger
	provider provider
}

// Name returns the display name of the issuer; false if sign-in by OpenID Connect is not
// configured.
func (oi *OIDC) Name() (string, bool) {
	if oi.config == nil {
		return "", false
	}
	if oi.config.Name != "" {
		return oi.config.Name, true
	}
	u, err := url.Parse(oi.config.Issuer)
	return u.Host, err == nil
}

// Start starts a sign-in, or the confirmation of a session unless s is nil. It returns
// [ErrNoOIDC], or [ErrOIDC] if the issuer does not answer.
func (oi *OIDC) Start(ctx context.Context, s *Session) (OIDCStart, error) {
	config, _, err := oi.issuer(ctx)
	if err != nil {
		return OIDCStart{}, err
	}
	state, _, err := oi.random.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	nonce, _, err := oi.random.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	verifier, _, err := oi.random.secret("")
	if err != nil {
		return OIDCStart{}, err
	}
	flow := oidcFlow{State: state, Nonce: nonce, Verifier: verifier, Until: oi.now().Add(OIDCLife).Unix()}
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	if s != nil {
		flow.Session, flow.Person = s.ID, s.Person
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
	}
	cookie, err := oi.sealer.sealJSON(sealOIDC, flow)
	return OIDCStart{config.AuthCodeURL(state, options...), cookie}, err
}

// claims are the claims used from an ID token, besides those that the verifier checks.
type claims struct {
	Email    string `json:"email"`
	Verified bool   `json:"email_verified"`
	Name     string `json:"name"`
	AuthTime int64  `json:"auth_time"`
}

// Finish completes a sign-in or confirmation from the query of the issuer's redirect and the
// browser's cookie. If the account has not been linked to the issuer before, it loses its password
// and sessions. Finish returns [ErrOIDC], [ErrNoAccount], or [ErrSignedOut] if the sign-in took too
// long.
func (oi *OIDC) Finish(ctx context.Context, cookie string, query url.Values, c Client) (SignedIn, error) {
	var flow oidcFlow
	if err := oi.sealer.openJSON(sealOIDC, cookie, &flow); err != nil || oi.now().Unix() > flow.Until {
		return SignedIn{}, ErrSignedOut
	}
	if query.Get("state") != flow.State {
		return SignedIn{}, ErrSignedOut
	}
	if problem := query.Get("error"); problem != "" {
		return SignedIn{}, fmt.Errorf("%w: its answer was %.100q", ErrOIDC, problem)
	}
	token, said, err := oi.exchange(ctx, flow, query.Get("code"))
	if err != nil {
		return SignedIn{}, err
	}
	p, tookOver, err := oi.identify(ctx, token, said, flow.Person)
	if err != nil {
		return SignedIn{}, err
	}
	switch {
	case flow.Session == uuid.Nil && p.Factor != nil:
		return oi.starter.pending(p, byOIDC)
	case flow.Session == uuid.Nil:
		in, err := oi.starter.start(ctx, p, c, byOIDC)
		in.TookOver = tookOver
		return in, err
	case p.ID != flow.Person || oi.now().Sub(time.Unix(said.AuthTime, 0)) > maxAuthAge:
		return SignedIn{}, fmt.Errorf("%w: sign in there again, as the same person", ErrOIDC)
	}
	rotated, err := oi.sessions.rotate(ctx, flow.Session)
	return SignedIn{Token: rotated}, err
}

// exchange trades an authorization code for an ID token and verifies it.
func (oi *OIDC) exchange(ctx context.Context, flow oidcFlow, code string) (*oidc.IDToken, claims, error) {
	var said claims
	config, verifier, err := oi.issuer(ctx)
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
		return nil, said, fmt.Errorf("%w: the nonce differs", ErrOIDC)
	}
	if err := token.Claims(&said); err != nil {
		return nil, said, fmt.Errorf("%w: %w", ErrOIDC, err)
	}
	return token, said, nil
}

// identify returns the person that the issuer identifies: the one who signed in as that subject
// before, else the one with the verified e-mail address, else a new person if the domain is
// configured.
//
// The server does not verify the addresses of accounts otherwise, because the person who creates an
// invitation sees its link, too. The first sign-in through an issuer therefore removes the password
// and all sessions, unless it started in a session of that person: an attacker who made an account with
// another person's address must not keep access to it. The second factor stays, so that the issuer
// alone cannot bypass it.
func (oi *OIDC) identify(ctx context.Context, token *oidc.IDToken, said claims,
	signedIn uuid.UUID) (p pgaccount.Person, tookOver bool, err error) {
	p, err = oi.people.ByIdentity(ctx, token.Issuer, token.Subject)
	if !errors.Is(err, pgaccount.ErrNotFound) {
		return p, false, err
	}
	email, ok := NormalEmail(said.Email)
	if !ok || !said.Verified {
		return p, false, fmt.Errorf("%w: no verified e-mail address", ErrOIDC)
	}
	p, err = oi.people.ByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		p, err = oi.addIdentified(ctx, token, email, said.Name)
		return p, false, err
	}
	if err != nil {
		return p, false, err
	}
	link := oi.people.TakeOver
	if p.ID == signedIn {
		link = oi.people.AddIdentity
	}
	if err := link(ctx, p.ID, token.Issuer, token.Subject); errors.Is(err, pgaccount.ErrExists) {
		return p, false, fmt.Errorf("%w: this address now belongs to another account there", ErrOIDC)
	} else if err != nil {
		return p, false, err
	}
	if err := oi.activity.recordEverywhere(ctx, p, "identity.add", map[string]any{"issuer": token.Issuer}); err != nil {
		return p, false, err
	}
	now, err := oi.people.Get(ctx, p.ID)
	return now, p.Password != now.Password, err
}

// addIdentified creates an account for a person from a configured domain.
func (oi *OIDC) addIdentified(ctx context.Context, token *oidc.IDToken,
	email, name string) (pgaccount.Person, error) {
	_, domain, _ := strings.Cut(email, "@")
	role, ok := oi.config.Domains[domain]
	if !ok {
		return pgaccount.Person{}, ErrNoAccount
	}
	id, err := oi.random.id()
	if err != nil {
		return pgaccount.Person{}, err
	}
	org := oi.config.Org
	if org == uuid.Nil {
		org = MainOrg
	}
	if name, ok = normalName(name); !ok {
		name = email
	}
	p := pgaccount.Person{ID: id, Email: email, Name: name, Created: oi.now()}
	err = oi.people.AddIdentified(ctx, p, token.Issuer, token.Subject, org, string(role))
	if errors.Is(err, pgaccount.ErrFormer) {
		return p, ErrNoAccount
	}
	if err != nil {
		return p, mapError(err)
	}
	by := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: org}
	return p, oi.activity.record(ctx, by, "member.join", p.Email,
		map[string]any{"role": string(role), "invited_by": token.Issuer})
}

// issuerClient sends the requests to issuers.
var issuerClient = &http.Client{Timeout: issuerTimeout}

// provider caches the issuer's configuration.
type provider struct {
	mu      sync.Mutex
	config  *oauth2.Config
	verify  *oidc.IDTokenVerifier
	failed  error
	retryAt time.Time // earliest time of the next attempt, after a failure
}

// issuer returns the issuer's configuration. It is fetched when first needed, so that the server
// can start while the issuer is down.
func (oi *OIDC) issuer(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	if oi.config == nil {
		return nil, nil, ErrNoOIDC
	}
	p := &oi.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config != nil {
		return p.config, p.verify, nil
	}
	now := oi.now()
	if p.failed != nil && now.Before(p.retryAt) {
		return nil, nil, p.failed
	}
	// The provider fetches keys later with this context.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), issuerClient), oi.config.Issuer)
	if err != nil {
		oi.log.Warn("cannot reach the identity provider", "issuer", oi.config.Issuer, "err", err)
		p.failed, p.retryAt = fmt.Errorf("%w: no response", ErrOIDC), now.Add(issuerPause)
		return nil, nil, p.failed
	}
	p.config = &oauth2.Config{
		ClientID: oi.config.ClientID, ClientSecret: oi.config.ClientSecret, Endpoint: found.Endpoint(),
		RedirectURL: oi.url + OIDCPath, Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
	p.verify = found.Verifier(&oidc.Config{ClientID: oi.config.ClientID, Now: oi.now})
	return p.config, p.verify, nil
}
