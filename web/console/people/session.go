package people

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/console/shell"
)

// Cookies that only this host can set, because of their prefix.
const (
	pendingCookie    = "__Host-proofline.pending"    // token of a sign-in that needs a code
	oidcCookie       = "__Host-proofline.oidc"       // state of a sign-in at the identity provider
	oidcNextCookie   = "__Host-proofline.oidc-next"  // page to show after that sign-in
	invitationCookie = "__Host-proofline.invitation" // token of an opened link
)

// invitationAge is how long a browser keeps the token of a link.
const invitationAge = time.Hour

// sessions finds and starts the sessions of browsers.
type sessions struct{ *account.Sessions }

// of returns the session of the browser.
func (s sessions) of(ctx context.Context, x *shell.Request) (account.Session, error) {
	found, err := s.Get(ctx, x.Token(shell.SessionCookie))
	if errors.Is(err, account.ErrSignedOut) {
		return found, shell.ErrSignIn
	}
	return found, err
}

// enter stores the tokens of a sign-in and redirects to the next page. It ends the previous session, so
// that another person's session does not continue under a new name.
func (s sessions) enter(x *shell.Request, in account.SignedIn, next string) error {
	if in.Known != "" {
		x.SetKnown(in.Known)
	}
	if in.Pending != "" {
		x.SetToken(pendingCookie, in.Pending, account.PendingLife)
		return x.Redirect(http.StatusSeeOther, shell.Path+"/sign-in/code?next="+url.QueryEscape(next))
	}
	if before := x.Token(shell.SessionCookie); before != "" {
		if err := s.SignOut(x.Request().Context(), before); err != nil {
			return err
		}
	}
	x.RemoveToken(pendingCookie)
	x.SetSession(in.Token)
	return x.Redirect(http.StatusSeeOther, next)
}

// IdentifyBy returns a function that identifies sessions by their tokens.
func IdentifyBy(sessions *account.Sessions, members *account.Members) func(context.Context,
	string) (shell.Identity, error) {
	return func(ctx context.Context, token string) (shell.Identity, error) {
		s, err := sessions.Get(ctx, token)
		if errors.Is(err, account.ErrSignedOut) {
			return shell.Identity{}, shell.ErrSignIn
		}
		if err != nil {
			return shell.Identity{}, err
		}
		memberships, err := members.Memberships(ctx, s)
		if err != nil {
			return shell.Identity{}, err
		}
		who := shell.Identity{
			Actor: s.Actor(), Name: s.Name, Organization: shell.Organization{Slug: s.Org.Slug, Name: s.Org.Name},
			Confirmed: s.Confirmed, MustEnrol: s.MustEnrol(),
		}
		for _, m := range memberships {
			who.Organizations = append(who.Organizations, shell.Organization{Slug: m.Slug, Name: m.Name})
		}
		return who, nil
	}
}
