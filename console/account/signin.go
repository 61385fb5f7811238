package account

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// Client is the browser of a request.
type Client struct {
	Addr      netip.Addr
	UserAgent string
	// Known is the value that an earlier [SignedIn] gave this browser to keep for [KnownLife];
	// empty if none.
	Known string
}

// Lifetimes of the values that browsers keep.
const (
	PendingLife = 10 * time.Minute     // to enter the second factor
	KnownLife   = 365 * 24 * time.Hour // to count as a known browser
)

// SignedIn is the result of a sign-in: a session, or the request for a code.
type SignedIn struct {
	Token   string // session token for the cookie; empty while a code is missing
	Known   string // value for the browser to keep
	Pending string // argument of [Accounts.SignInCode], valid for [PendingLife]; empty with a Token
	// TookOver reports whether the sign-in through the issuer removed the account's password.
	TookOver bool
}

// Ways to sign in, as the activity log records them.
const (
	byPassword   = "password"
	byOIDC       = "OpenID Connect"
	byInvitation = "invitation"
)

// Sealing purposes.
const (
	sealPending = "account/pending"
	sealKnown   = "account/known"
	sealOIDC    = "account/oidc"
)

// SignIn signs in with a password. It returns [ErrCredentials] or a *[RateError].
func (a *Accounts) SignIn(ctx context.Context, email, password string, c Client) (SignedIn, error) {
	email, ok := NormalEmail(email)
	if !ok {
		email = "" // no account has it; the check takes as long as any other
	}
	key := a.limitKey(email, c)
	if err := a.countAttempt(ctx, email, key, c); err != nil {
		return SignedIn{}, err
	}
	p, err := a.Store.PersonByEmail(ctx, email)
	if err != nil && !errors.Is(err, pgaccount.ErrNotFound) {
		return SignedIn{}, err
	}
	turns := a.hashing
	if key != email {
		turns = a.known
	}
	ok, err = a.checkPassword(ctx, turns, p.Password, password)
	if err != nil {
		return SignedIn{}, err
	}
	if !ok {
		return SignedIn{}, ErrCredentials
	}
	if key == email {
		if err := a.refund(ctx, networkLimit, network(c.Addr)); err != nil {
			return SignedIn{}, err
		}
	}
	if a.isStale(p.Password) {
		if err := a.rehash(ctx, p, password); err != nil {
			return SignedIn{}, err
		}
	}
	if p.Factor != nil {
		return a.pending(p, byPassword)
	}
	if err := a.resetAttempts(ctx, email, key, c); err != nil {
		return SignedIn{}, err
	}
	return a.startSession(ctx, p, c, byPassword)
}

// countAttempt counts an attempt: against the browser if it is known, otherwise against the network, the
// pair of account and network, and the account.
func (a *Accounts) countAttempt(ctx context.Context, email, key string, c Client) error {
	if key != email {
		_, err := a.attempt(ctx, knownLimit, key)
		return err
	}
	if _, err := a.attempt(ctx, networkLimit, network(c.Addr)); err != nil {
		return err
	}
	if _, err := a.attempt(ctx, pairLimit, pair(email, c)); err != nil {
		return err
	}
	level, err := a.attempt(ctx, accountLimit, email)
	if err == nil && level > refusalsReported-1 && level <= refusalsReported {
		a.work.Go(func() { a.reportRefusals(context.WithoutCancel(ctx), email, c) }) // known or not takes the same time
	}
	return err
}

// refusalsReported is the level of failed attempts at which the activity log gets an entry.
const refusalsReported = 10

// pair returns the key that counts attempts for an address from one network.
func pair(email string, c Client) string { return email + " " + network(c.Addr) }

// resetAttempts resets the counts of failed attempts after a sign-in.
func (a *Accounts) resetAttempts(ctx context.Context, email, key string, c Client) error {
	if key != email {
		return a.Store.Forget(ctx, knownLimit.key(key))
	}
	return errors.Join(a.Store.Forget(ctx, accountLimit.key(email)), a.Store.Forget(ctx, pairLimit.key(pair(email, c))))
}

// reportRefusals logs that many sign-ins have failed.
func (a *Accounts) reportRefusals(ctx context.Context, email string, c Client) {
	p, err := a.Store.PersonByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		return
	}
	if err == nil {
		err = a.recordEverywhere(ctx, p, "sign-in.refused", map[string]any{"network": network(c.Addr)})
	}
	if err != nil {
		a.Log.Error("cannot log refused sign-ins", "err", err)
	}
}

// recordEverywhere writes an activity log entry about a person to all of the person's
// organizations.
func (a *Accounts) recordEverywhere(ctx context.Context, p pgaccount.Person, verb string, detail map[string]any) error {
	orgs, err := a.Store.Memberships(ctx, p.ID)
	if err != nil {
		return err
	}
	for _, o := range orgs {
		by := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: o.ID}
		if err := a.record(ctx, by, verb, p.Email, detail); err != nil {
			return err
		}
	}
	return nil
}

// rehash stores the hash of a correct password with the current parameters.
func (a *Accounts) rehash(ctx context.Context, p pgaccount.Person, password string) error {
	phc, err := a.hashPassword(ctx, password)
	if err != nil {
		return err
	}
	return a.Store.Rehash(ctx, p.ID, p.Password, phc)
}

// pendingSignIn is a sign-in that waits for a code.
type pendingSignIn struct {
	Person uuid.UUID `json:"person"`
	// State is a hash of password and factor, so that changing either invalidates the sign-in.
	State []byte `json:"state"`
	By    string `json:"by"`
	Until int64  `json:"until"` // Unix time
}

// signInState returns a value that changes with the password and the factor.
func signInState(p pgaccount.Person) []byte {
	return hashOf(p.Password + "\x00" + string(p.Factor))
}

// pending returns a sign-in that waits for a code.
func (a *Accounts) pending(p pgaccount.Person, by string) (SignedIn, error) {
	text, err := a.sealJSON(sealPending, pendingSignIn{p.ID, signInState(p), by, a.Now().Add(PendingLife).Unix()})
	return SignedIn{Pending: text}, err
}

// SignInCode completes a sign-in with a TOTP code or a recovery code. It returns [ErrCredentials],
// [ErrSignedOut] if it took too long, or a *[RateError].
func (a *Accounts) SignInCode(ctx context.Context, pending, code string, c Client) (SignedIn, error) {
	var v pendingSignIn
	if err := a.openJSON(sealPending, pending, &v); err != nil || a.Now().Unix() > v.Until {
		return SignedIn{}, ErrSignedOut
	}
	p, err := a.Store.Person(ctx, v.Person)
	if err != nil {
		return SignedIn{}, mapNotFound(err, ErrSignedOut)
	}
	if string(signInState(p)) != string(v.State) {
		return SignedIn{}, ErrSignedOut
	}
	key := a.limitKey(p.Email, c)
	recovery, err := a.useFactor(ctx, p, code, codeKey(p, key))
	if err != nil {
		return SignedIn{}, err
	}
	if err := a.resetAttempts(ctx, p.Email, key, c); err != nil {
		return SignedIn{}, err
	}
	by := v.By + " and code"
	if recovery {
		by = v.By + " and recovery code"
	}
	return a.startSession(ctx, p, c, by)
}

// codeKey returns the key that counts attempts with codes: the browser if it is known, otherwise
// the person. An attacker who has the password can therefore not lock the person out.
func codeKey(p pgaccount.Person, key string) string {
	if key != p.Email {
		return key
	}
	return p.ID.String()
}

// startSession starts a session.
func (a *Accounts) startSession(ctx context.Context, p pgaccount.Person, c Client, by string) (SignedIn, error) {
	org, err := a.homeOf(ctx, p.ID)
	if err != nil {
		return SignedIn{}, err
	}
	token, err := a.addSession(ctx, p.ID, org, c)
	if err != nil {
		return SignedIn{}, err
	}
	known, err := a.newKnown(p.Email)
	if err != nil {
		return SignedIn{}, err
	}
	if org != uuid.Nil {
		actor := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: org}
		err = a.record(ctx, actor, "sign-in", p.Email,
			map[string]any{"by": by, "device": device(c.UserAgent), "network": network(c.Addr)})
	}
	return SignedIn{Token: token, Known: known}, err
}

// homeOf returns an organization of a person; the zero value if there is none.
func (a *Accounts) homeOf(ctx context.Context, person uuid.UUID) (uuid.UUID, error) {
	orgs, err := a.Store.Memberships(ctx, person)
	if err != nil || len(orgs) == 0 {
		return uuid.Nil, err
	}
	return orgs[0].ID, nil
}

// newKnown returns the value that makes a browser known for an address. It is random, so that each
// browser has its own count
// (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies).
func (a *Accounts) newKnown(email string) (string, error) {
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	until := strconv.FormatInt(a.Now().Add(KnownLife).Unix(), 10)
	return a.sealText(sealKnown, email+" "+id.String()+" "+until), nil
}

// limitKey returns the key that counts attempts for an address: the browser if it is known for that
// address, otherwise the address.
func (a *Accounts) limitKey(email string, c Client) string {
	text, err := a.openText(sealKnown, c.Known)
	fields := strings.Fields(text)
	if err != nil || len(fields) != 3 || fields[0] != email {
		return email
	}
	if until, err := strconv.ParseInt(fields[2], 10, 64); err != nil || a.Now().Unix() > until {
		return email
	}
	return email + " " + fields[1]
}
