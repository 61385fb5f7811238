package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/proofline/proofline/console/account"
)

// invitationRoutes are those of one-time links. A link has its token in the
// fragment, which browsers do not send; a script, or the person, puts it into
// the form, and from then on a cookie has it.
func (c *Console) invitationRoutes() []route {
	return []route{
		{GET, "/setup", Public, c.showLink},
		{GET, "/invitation", Public, c.showLink},
		{POST, "/invitation", Public, c.takeLink},
		{GET, "/invitation/accept", Public, c.showInvitation},
		{POST, "/invitation/accept", Public, c.acceptInvitation},
		{POST, "/invitation/join", SignedIn, c.joinInvitation},
	}
}

func (c *Console) showLink(x *request) error {
	return x.page("link", x.Request().URL.Path == Path+"/setup")
}

// takeLink takes the token of a link, or the whole link, that was pasted.
func (c *Console) takeLink(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	token := strings.TrimSpace(x.form("token"))
	if _, after, ok := strings.Cut(token, "#t="); ok {
		token = after
	}
	if known, err := c.Accounts.SignInLinks.Unlock(ctx, token); err == nil {
		x.SetKnown(known)
		return x.done("/sign-in", "browser-known")
	} else if !errors.Is(err, account.ErrLink) {
		return err
	}
	if _, err := c.Accounts.Invitations.Offer(ctx, token); err != nil {
		return x.refused("link", "token", false, err)
	}
	x.keep(invitationCookie, token, invitationAge)
	return x.done("/invitation/accept", "")
}

// invitationPage is what the page of an invitation shows.
type invitationPage struct {
	account.Offer
	Form account.NewPerson // as far as it was sent; without password
	Mine bool              // who is signed in may join by it
}

// offer returns what the link in the browser's cookie leads to.
func (x *request) offer(ctx context.Context) (invitationPage, error) {
	offer, err := x.console.Accounts.Invitations.Offer(ctx, x.kept(invitationCookie))
	if err != nil {
		return invitationPage{}, err
	}
	mine := x.Actor.Kind == account.Person && (offer.Email == "" || offer.Email == x.Actor.Name) && !offer.Recovers && !offer.Setup
	return invitationPage{Offer: offer, Mine: mine}, nil
}

func (c *Console) showInvitation(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.offer(ctx)
	if err != nil {
		return x.deadLink(err)
	}
	return x.page("invitation", page)
}

// deadLink answers for a link that leads nowhere.
func (x *request) deadLink(err error) error {
	if errors.Is(err, account.ErrLink) {
		x.forget(invitationCookie)
	}
	return x.refused("link", "token", false, err)
}

// acceptInvitation makes an account, and signs in.
func (c *Console) acceptInvitation(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	page, err := x.offer(ctx)
	if err != nil {
		return x.deadLink(err)
	}
	page.Form = account.NewPerson{OrgName: x.form("organization"), Email: x.form("email"), Name: x.form("name")}
	said := page.Form
	said.Password = x.form("password")
	in, err := c.Accounts.Invitations.Accept(ctx, x.kept(invitationCookie), said, x.client())
	switch {
	case errors.Is(err, account.ErrExists):
		return x.refused("invitation", "email", page, err)
	case errors.Is(err, account.ErrLink):
		return x.deadLink(err)
	case err != nil:
		return x.refused("invitation", "", page, err)
	}
	x.forget(invitationCookie)
	return x.enter(in, Path)
}

// joinInvitation makes a member of somebody who is signed in.
func (c *Console) joinInvitation(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	page, err := x.offer(ctx)
	if err != nil {
		return x.deadLink(err)
	}
	if err := c.Accounts.Invitations.Join(ctx, s, x.kept(invitationCookie)); err != nil {
		return x.refused("invitation", "", page, err)
	}
	x.forget(invitationCookie)
	return x.Redirect(http.StatusSeeOther, Path)
}
