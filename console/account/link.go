package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// SignInLinkLife is how long a sign-in link is valid.
const SignInLinkLife = time.Hour

const sealUnlock = "account/unlock"

// SignInLinks makes one-time links that mark a browser as known for an address.
type SignInLinks struct {
	people     *pgaccount.People
	browsers   *browsers
	mailer     Mailer // nil: links are not mailed
	limits     *limiter
	sealer     *sealer
	activity   *recorder
	random     random
	url        string
	now        func() time.Time
	log        *slog.Logger
	background sync.WaitGroup // mails that outlive their requests
}

// CanMail reports whether sign-in links can be mailed.
func (l *SignInLinks) CanMail() bool { return l.mailer != nil }

// Make returns a one-time link that marks a browser as known for an address, so that others'
// guesses do not lock it out. Signing in still requires the password. Only the server's
// administrator may create one. It returns [ErrForbidden] or [ErrNotFound].
func (l *SignInLinks) Make(ctx context.Context, by Actor, email string) (string, error) {
	if by.Kind != Server {
		return "", ErrForbidden
	}
	normal, ok := NormalEmail(email)
	if !ok {
		return "", invalid.Field("email", wantEmail)
	}
	p, err := l.people.ByEmail(ctx, normal)
	if err != nil {
		return "", mapError(err)
	}
	link, err := l.link(normal)
	if err != nil {
		return "", err
	}
	return link, l.activity.recordEverywhere(ctx, p, "sign-in.link", map[string]any{"by": by.Name})
}

// Mail mails a sign-in link. Its result and timing do not reveal whether the address has
// an account. It returns a *[RateError].
func (l *SignInLinks) Mail(ctx context.Context, email string, c Client) error {
	email, ok := NormalEmail(email)
	if !ok {
		return invalid.Field("email", wantEmail)
	}
	if l.mailer == nil {
		return ErrForbidden
	}
	if _, err := l.limits.attempt(ctx, linkNetworkLimit, network(c.Addr)); err != nil {
		return err
	}
	if _, err := l.limits.attempt(ctx, linkLimit, email); err != nil {
		return err
	}
	l.background.Go(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), mailTime)
		defer stop()
		if err := l.mail(ctx, email, c); err != nil {
			l.log.Warn("cannot mail sign-in link", "err", err)
		}
	})
	return nil
}

// mailTime limits the time for sending a mail in the background.
const mailTime = time.Minute

func (l *SignInLinks) mail(ctx context.Context, email string, c Client) error {
	p, err := l.people.ByEmail(ctx, email)
	if errors.Is(err, pgaccount.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	link, err := l.link(email)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Someone, probably you, could not sign in to Proofline because of many failed attempts.\n\n"+
		"Open this link in the browser you want to sign in with. Then enter your password as usual. "+
		"It works once, within an hour.\n\n%s\n\n"+
		"If it was not you, you need not do anything: the link is of no use without your password.\n", link)
	if err := l.mailer.Send(ctx, email, "Sign in to Proofline", text); err != nil {
		return err
	}
	return l.activity.recordEverywhere(ctx, p, "sign-in.link", map[string]any{"network": network(c.Addr)})
}

// link creates a link. The link is sealed, so nothing is stored until it is used.
func (l *SignInLinks) link(email string) (string, error) {
	id, err := l.random.id()
	if err != nil {
		return "", err
	}
	until := strconv.FormatInt(l.now().Add(SignInLinkLife).Unix(), 10)
	return l.url + "/console/invitation#t=" + l.sealer.sealText(sealUnlock, email+" "+id.String()+" "+until), nil
}

// Unlock consumes a link and returns the value that marks the browser as known, or [ErrLink].
func (l *SignInLinks) Unlock(ctx context.Context, token string) (keep string, err error) {
	text, err := l.sealer.openText(sealUnlock, token)
	if err != nil {
		return "", ErrLink
	}
	email, id, now := "", "", l.now()
	if fields := strings.Fields(text); len(fields) == 3 {
		if until, err := strconv.ParseInt(fields[2], 10, 64); err == nil && now.Unix() <= until {
			email, id = fields[0], fields[1]
		}
	}
	if _, err := uuid.Parse(id); err != nil {
		return "", ErrLink
	}
	if err := l.limits.useLink(ctx, id); err != nil {
		return "", err
	}
	return l.browsers.remember(email)
}
