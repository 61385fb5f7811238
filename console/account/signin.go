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

// Client is the browser that somebody signs in with.
type Client struct {
	Addr      netip.Addr
	UserAgent string
	// Known is what an earlier [SignedIn] gave this browser to keep, for
	// [KnownLife]; empty for nothing.
	Known string
}

// How long what a browser keeps is good for.
const (
	PendingLife = 10 * time.Minute     // to show the second factor
	KnownLife   = 365 * 24 * time.Hour // to count as known
)

// SignedIn is what a sign-in leads to: a session, or the question for a code.
type SignedIn struct {
	Token   string // of the session, for the cookie; empty while a code is missing
	Known   string // for the browser to keep
	Pending string // for [Accounts.SignInCode], for [PendingLife]; empty with a Token
	// TookOver tells that the account had a password until now, which the issuer's
	// word has ended.
	TookOver bool
}

// Ways to sign in, as they are recorded.
const (
	byPassword   = "password"
	byOIDC       = "OpenID Connect"
	byInvitation = "invitation"
)

// Purposes of what is sealed.
const (
	sealPending = "account/pending"
	sealKnown   = "account/known"
	sealOIDC    = "account/oidc"
)

// SignIn signs in with a password: [ErrCredentials], *[RateError].
func (a *Accounts) SignIn(ctx context.Context, email, password string, c Client) (SignedIn, error) {
	email, ok := NormalEmail(email)
	if !ok {
		email = "" // nobody has it; what follows takes as long as ever
	}
	who := a.counted(email, c)
	if err := a.begin(ctx, email, who, c); err != nil {
		return SignedIn{}, err
	}
	p, err := a.Store.PersonByEmail(ctx, email)
	if err != nil && !errors.Is(err, pgaccount.ErrNotFound) {
		return SignedIn{}, err
	}
	ok, err = a.checkPassword(ctx, p.Password, password)
	if err != nil {
		return SignedIn{}, err
	}
	if !ok {
		return SignedIn{}, ErrCredentials
	}
	if who == email {
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
	if err := a.forgive(ctx, email, who, c); err != nil {
		return SignedIn{}, err
	}
	return a.open(ctx, p, c, byPassword)
}

// begin counts an attempt: against a known browser alone, or against the network,
// the account from that network, and the account.
func (a *Accounts) begin(ctx context.Context, email, who string, c Client) error {
	if who != email {
		_, err := a.attempt(ctx, knownLimit, who)
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

// refusalsReported is the level of an account's failed attempts that the log of
// its organizations has.
const refusalsReported = 10

// pair is what attempts for an address from one network are counted under.
func pair(email string, c Client) string { return email + " " + network(c.Addr) }

// forgive forgets the attempts of somebody who has signed in.
func (a *Accounts) forgive(ctx context.Context, email, who string, c Client) error {
	if who != email {
		return a.Store.Forget(ctx, knownLimit.key(who))
	}
	return errors.Join(a.Store.Forget(ctx, accountLimit.key(email)), a.Store.Forget(ctx, pairLimit.key(pair(email, c))))
}

// reportRefusals records that sign-ins failed many times.
func (a *Accounts) reportRefusals(ctx context.Context, email string, c Client) {
	p, err := a.Store.PersonByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		return
	}
	if err == nil {
		err = a.recordEverywhere(ctx, p, "sign-in.refused", map[string]any{"network": network(c.Addr)})
	}
	if err != nil {
		a.Log.Error("refused sign-ins not recorded", "err", err)
	}
}

// recordEverywhere records a deed about a person in all organizations of that
// person.
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

// rehash hashes a password, which was right, at today's cost.
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
	// State is a hash of password and factor: a change of either voids it.
	State []byte `json:"state"`
	By    string `json:"by"`
	Until int64  `json:"until"` // Unix time
}

// signInState changes whenever password or factor do.
func signInState(p pgaccount.Person) []byte {
	return hashOf(p.Password + "\x00" + string(p.Factor))
}

// pending returns a sign-in that waits for a code.
func (a *Accounts) pending(p pgaccount.Person, by string) (SignedIn, error) {
	text, err := a.sealJSON(sealPending, pendingSignIn{p.ID, signInState(p), by, a.Now().Add(PendingLife).Unix()})
	return SignedIn{Pending: text}, err
}

// SignInCode completes a sign-in with a code of the second factor, or a
// recovery code: [ErrCredentials], [ErrSignedOut] when it took too long,
// *[RateError].
func (a *Accounts) SignInCode(ctx context.Context, pending, code string, c Client) (SignedIn, error) {
	var v pendingSignIn
	if err := a.openJSON(sealPending, pending, &v); err != nil || a.Now().Unix() > v.Until {
		return SignedIn{}, ErrSignedOut
	}
	p, err := a.Store.Person(ctx, v.Person)
	if err != nil {
		return SignedIn{}, orElse(err, ErrSignedOut)
	}
	if string(signInState(p)) != string(v.State) {
		return SignedIn{}, ErrSignedOut
	}
	who := a.counted(p.Email, c)
	recovery, err := a.useFactor(ctx, p, code, codeKey(p, who))
	if err != nil {
		return SignedIn{}, err
	}
	if err := a.forgive(ctx, p.Email, who, c); err != nil {
		return SignedIn{}, err
	}
	by := v.By + " and code"
	if recovery {
		by = v.By + " and recovery code"
	}
	return a.open(ctx, p, c, by)
}

// codeKey is what codes are counted under: the browser if it is known, so that an
// attacker who has the password does not keep the person out, else the person.
func codeKey(p pgaccount.Person, who string) string {
	if who != p.Email {
		return who
	}
	return p.ID.String()
}

// open begins a session.
func (a *Accounts) open(ctx context.Context, p pgaccount.Person, c Client, by string) (SignedIn, error) {
	org, err := a.homeOf(ctx, p.ID)
	if err != nil {
		return SignedIn{}, err
	}
	token, err := a.addSession(ctx, p.ID, org, c)
	if err != nil {
		return SignedIn{}, err
	}
	known, err := a.know(p.Email)
	if err != nil {
		return SignedIn{}, err
	}
	if org != uuid.Nil {
		actor := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: org}
		err = a.record(ctx, actor, "sign-in", p.Email, map[string]any{"by": by, "device": device(c.UserAgent), "network": network(c.Addr)})
	}
	return SignedIn{Token: token, Known: known}, err
}

// homeOf returns an organization of a person, the zero value for none.
func (a *Accounts) homeOf(ctx context.Context, person uuid.UUID) (uuid.UUID, error) {
	orgs, err := a.Store.Memberships(ctx, person)
	if err != nil || len(orgs) == 0 {
		return uuid.Nil, err
	}
	return orgs[0].ID, nil
}

// know returns what a browser keeps to be known for an address: a random
// value, so that each browser has a count of its own
// (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies).
func (a *Accounts) know(email string) (string, error) {
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	until := strconv.FormatInt(a.Now().Add(KnownLife).Unix(), 10)
	return a.sealText(sealKnown, email+" "+id.String()+" "+until), nil
}

// counted is whom attempts for an address are counted against: the browser if
// it is known for it, else the address.
func (a *Accounts) counted(email string, c Client) string {
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
