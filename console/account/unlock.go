package account

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// SignInLinkLife is how long a sign-in link is valid.
const SignInLinkLife = time.Hour

const sealUnlock = "account/unlock"

// HasMail reports whether sign-in links can be mailed.
func (a *Accounts) HasMail() bool { return a.Mailer != nil }

// SignInLink returns a one-time link that makes a browser known for an address, so that others'
// guesses do not lock it out. Signing in still requires the password. Only the server's
// administrator may create one. It returns [ErrForbidden] or [ErrNotFound].
func (a *Accounts) SignInLink(ctx context.Context, by Actor, email string) (string, error) {
	if by.Kind != Server {
		return "", ErrForbidden
	}
	normal, ok := NormalEmail(email)
	if !ok {
		return "", invalid.Field("email", wantEmail)
	}
	p, err := a.Store.PersonByEmail(ctx, normal)
	if err != nil {
		return "", mapError(err)
	}
	link, err := a.signInLink(normal)
	if err != nil {
		return "", err
	}
	return link, a.recordEverywhere(ctx, p, "sign-in.link", map[string]any{"by": by.Name})
}

// MailSignInLink mails a sign-in link. Its result and timing do not reveal whether the address has
// an account. It returns a *[RateError].
func (a *Accounts) MailSignInLink(ctx context.Context, email string, c Client) error {
	email, ok := NormalEmail(email)
	if !ok {
		return invalid.Field("email", wantEmail)
	}
	if a.Mailer == nil {
		return ErrForbidden
	}
	if _, err := a.attempt(ctx, linkNetworkLimit, network(c.Addr)); err != nil {
		return err
	}
	if _, err := a.attempt(ctx, linkLimit, email); err != nil {
		return err
	}
	a.work.Go(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), mailTime)
		defer stop()
		if err := a.mailSignInLink(ctx, email, c); err != nil {
			a.Log.Warn("cannot mail sign-in link", "err", err)
		}
	})
	return nil
}

// mailTime bounds sending a mail in the background.
const mailTime = time.Minute

func (a *Accounts) mailSignInLink(ctx context.Context, email string, c Client) error {
	p, err := a.Store.PersonByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	link, err := a.signInLink(email)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Someone, probably you, could not sign in to Proofline because of many failed attempts.\n\n"+
		"Open this link in the browser you want to sign in with. Then enter your password as usual. It works once, within an hour.\n\n%s\n\n"+
		"If it was not you, you need not do anything: the link is of no use without your password.\n", link)
	if err := a.Mailer.Send(ctx, email, "Sign in to Proofline", text); err != nil {
		return err
	}
	return a.recordEverywhere(ctx, p, "sign-in.link", map[string]any{"network": network(c.Addr)})
}

// signInLink creates a link. The link is sealed, so nothing is stored until it is used.
func (a *Accounts) signInLink(email string) (string, error) {
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	until := strconv.FormatInt(a.Now().Add(SignInLinkLife).Unix(), 10)
	return a.URL + "/console/invitation#t=" + a.sealText(sealUnlock, email+" "+id.String()+" "+until), nil
}

// Unlock consumes a link and returns the value that makes the browser known, or [ErrLink].
func (a *Accounts) Unlock(ctx context.Context, token string) (keep string, err error) {
	text, err := a.openText(sealUnlock, token)
	if err != nil {
		return "", ErrLink
	}
	email, id, now := "", "", a.Now()
	if fields := strings.Fields(text); len(fields) == 3 {
		if until, err := strconv.ParseInt(fields[2], 10, 64); err == nil && now.Unix() <= until {
			email, id = fields[0], fields[1]
		}
	}
	if _, err := uuid.Parse(id); err != nil {
		return "", ErrLink
	}
	err = a.Store.Attempt(ctx, usedLink.key(id), now, func(before pgaccount.Attempt) (pgaccount.Attempt, error) {
		if before.Level > 0 {
			return before, ErrLink
		}
		return pgaccount.Attempt{Level: 1, At: now, Next: now}, nil // kept for a day, longer than the link is valid
	})
	if err != nil {
		return "", err
	}
	return a.newKnown(email)
}
