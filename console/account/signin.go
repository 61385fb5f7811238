package account

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

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
	PendingLife = 10 * time.Minute     // time to enter the second factor
	KnownLife   = 365 * 24 * time.Hour // time that a browser counts as known
)

// SignedIn is the result of a sign-in: a session, or the request for a code.
type SignedIn struct {
	Token   string // session token for the cookie; empty while a code is missing
	Known   string // value for the browser to keep
	Pending string // argument of [SignIns.EnterCode], valid for [PendingLife]; empty with a Token
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

// SignIns signs people in with a password and, if they have one, a second factor.
type SignIns struct {
	people     *pgaccount.People
	passwords  *hasher
	factors    *Factors
	starter    *starter
	browsers   *browsers
	limits     *limiter
	sealer     *sealer
	activity   *recorder
	now        func() time.Time
	log        *slog.Logger
	background sync.WaitGroup // reports of refused sign-ins, which outlive their requests
}

// SignIn signs in with a password. It returns [ErrCredentials] or a *[RateError].
func (si *SignIns) SignIn(ctx context.Context, email, password string, c Client) (SignedIn, error) {
	email, ok := NormalEmail(email)
	if !ok {
		email = "" // no account has this address; the check takes as long as any other
	}
	key := si.browsers.limitKey(email, c)
	if err := si.countAttempt(ctx, email, key, c); err != nil {
		return SignedIn{}, err
	}
	p, err := si.people.ByEmail(ctx, email)
	if err != nil && !errors.Is(err, pgaccount.ErrNotFound) {
		return SignedIn{}, err
	}
	check := si.passwords.checkUnknown
	if key != email {
		check = si.passwords.check
	}
	ok, err = check(ctx, p.Password, password)
	if err != nil {
		return SignedIn{}, err
	}
	if !ok {
		return SignedIn{}, ErrCredentials
	}
	if key == email {
		if err := si.limits.refund(ctx, networkLimit, network(c.Addr)); err != nil {
			return SignedIn{}, err
		}
	}
	if si.passwords.isStale(p.Password) {
		if err := si.rehash(ctx, p, password); err != nil {
			return SignedIn{}, err
		}
	}
	if p.Factor != nil {
		return si.starter.pending(p, byPassword)
	}
	if err := si.resetAttempts(ctx, email, key, c); err != nil {
		return SignedIn{}, err
	}
	return si.starter.start(ctx, p, c, byPassword)
}

// countAttempt counts an attempt: against the browser if it is known, otherwise against the network, the
// pair of account and network, and the account.
func (si *SignIns) countAttempt(ctx context.Context, email, key string, c Client) error {
	if key != email {
		_, err := si.limits.attempt(ctx, knownLimit, key)
		return err
	}
	if _, err := si.limits.attempt(ctx, networkLimit, network(c.Addr)); err != nil {
		return err
	}
	if _, err := si.limits.attempt(ctx, pairLimit, pair(email, c)); err != nil {
		return err
	}
	level, err := si.limits.attempt(ctx, accountLimit, email)
	if err == nil && level > refusalsReported-1 && level <= refusalsReported {
		// In the background, so that it takes the same time whether the address has an account.
		si.background.Go(func() { si.reportRefusals(context.WithoutCancel(ctx), email, c) })
	}
	return err
}

// refusalsReported is the level of failed attempts at which the activity log gets an entry.
const refusalsReported = 10

// pair returns the key that counts attempts for an address from one network.
func pair(email string, c Client) string { return email + " " + network(c.Addr) }

// resetAttempts resets the counts of failed attempts after a sign-in.
func (si *SignIns) resetAttempts(ctx context.Context, email, key string, c Client) error {
	if key != email {
		return si.limits.forget(ctx, knownLimit, key)
	}
	return errors.Join(si.limits.forget(ctx, accountLimit, email), si.limits.forget(ctx, pairLimit, pair(email, c)))
}

// reportRefusals logs that many sign-ins have failed.
func (si *SignIns) reportRefusals(ctx context.Context, email string, c Client) {
	p, err := si.people.ByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		return
	}
	if err == nil {
		err = si.activity.recordEverywhere(ctx, p, "sign-in.refused", map[string]any{"network": network(c.Addr)})
	}
	if err != nil {
		si.log.Error("cannot log refused sign-ins", "err", err)
	}
}

// rehash stores the hash of a correct password with the current parameters.
func (si *SignIns) rehash(ctx context.Context, p pgaccount.Person, password string) error {
	phc, err := si.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	return si.people.Rehash(ctx, p.ID, p.Password, phc)
}

// EnterCode completes a sign-in with a TOTP code or a recovery code. It returns [ErrCredentials],
// [ErrSignedOut] if it took too long, or a *[RateError].
func (si *SignIns) EnterCode(ctx context.Context, pending, code string, c Client) (SignedIn, error) {
	var v pendingSignIn
	if err := si.sealer.openJSON(sealPending, pending, &v); err != nil || si.now().Unix() > v.Until {
		return SignedIn{}, ErrSignedOut
	}
	p, err := si.people.Get(ctx, v.Person)
	if err != nil {
		return SignedIn{}, mapNotFound(err, ErrSignedOut)
	}
	if string(signInState(p)) != string(v.State) {
		return SignedIn{}, ErrSignedOut
	}
	key := si.browsers.limitKey(p.Email, c)
	recovery, err := si.factors.use(ctx, p, code, codeKey(p, key))
	if err != nil {
		return SignedIn{}, err
	}
	if err := si.resetAttempts(ctx, p.Email, key, c); err != nil {
		return SignedIn{}, err
	}
	by := v.By + " and code"
	if recovery {
		by = v.By + " and recovery code"
	}
	return si.starter.start(ctx, p, c, by)
}

// codeKey returns the key that counts attempts with codes: the browser if it is known, otherwise
// the person. An attacker who has the password can therefore not lock the person out.
func codeKey(p pgaccount.Person, key string) string {
	if key != p.Email {
		return key
	}
	return p.ID.String()
}
