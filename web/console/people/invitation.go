package people

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/console/shell"
)

// invitations serves the pages of one-time links. The token of a link is in the fragment, which browsers do not
// send, so a script or the person enters it into a form. After that it is kept in a cookie.
type invitations struct {
	invitations *account.Invitations
	links       *account.SignInLinks
	sessions    sessions
}

func (h *invitations) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/setup", shell.Public, h.showLink),
		shell.Get("/invitation", shell.Public, h.showLink),
		shell.Post("/invitation", shell.Public, h.takeLink),
		shell.Get("/invitation/accept", shell.Public, h.showInvitation),
		shell.Post("/invitation/accept", shell.Public, h.acceptInvitation),
		shell.Post("/invitation/join", shell.SignedIn, h.joinInvitation),
	}
}

// linkPage is the data of the page that takes a link.
type linkPage struct {
	Setup bool // the page sets up the server
}

func (h *invitations) showLink(x *shell.Request) error {
	return x.Page("link", linkPage{Setup: x.Request().URL.Path == shell.Path+"/setup"})
}

// takeLink reads a pasted link or its token.
func (h *invitations) takeLink(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	token := strings.TrimSpace(x.Form("token"))
	if _, after, ok := strings.Cut(token, "#t="); ok {
		token = after
	}
	if known, err := h.links.Unlock(ctx, token); err == nil {
		x.SetKnown(known)
		return x.Done("/sign-in", "browser-known")
	} else if !errors.Is(err, account.ErrLink) {
		return err
	}
	if _, err := h.invitations.Offer(ctx, token); err != nil {
		return refused(x, "link", "token", linkPage{}, err)
	}
	x.SetToken(invitationCookie, token, invitationAge)
	return x.Done("/invitation/accept", "")
}

// invitationPage is the data of the page of an invitation.
type invitationPage struct {
	account.Offer
	Form account.NewPerson // fields as sent, without the password
	Mine bool              // the signed-in person can accept it
}

// offer returns the offer of the link in the browser's cookie.
func (h *invitations) offer(ctx context.Context, x *shell.Request) (invitationPage, error) {
	offer, err := h.invitations.Offer(ctx, x.Token(invitationCookie))
	if err != nil {
		return invitationPage{}, err
	}
	mine := x.Actor.Kind == account.Person && (offer.Email == "" || offer.Email == x.Actor.Name) && !offer.Recovers &&
		!offer.Setup
	return invitationPage{Offer: offer, Mine: mine}, nil
}

func (h *invitations) showInvitation(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.offer(ctx, x)
	if err != nil {
		return h.deadLink(x, err)
	}
	return x.Page("invitation", page)
}

// deadLink answers if a link is invalid or expired.
func (h *invitations) deadLink(x *shell.Request, err error) error {
	if errors.Is(err, account.ErrLink) {
		x.RemoveToken(invitationCookie)
	}
	return refused(x, "link", "token", linkPage{}, err)
}

// acceptInvitation creates an account and signs in.
func (h *invitations) acceptInvitation(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	page, err := h.offer(ctx, x)
	if err != nil {
		return h.deadLink(x, err)
	}
	page.Form = account.NewPerson{OrgName: x.Form("organization"), Email: x.Form("email"), Name: x.Form("name")}
	said := page.Form
	said.Password = x.Form("password")
	in, err := h.invitations.Accept(ctx, x.Token(invitationCookie), said, x.Client())
	switch {
	case errors.Is(err, account.ErrExists):
		return refused(x, "invitation", "email", page, err)
	case errors.Is(err, account.ErrLink):
		return h.deadLink(x, err)
	case err != nil:
		return refused(x, "invitation", "", page, err)
	}
	x.RemoveToken(invitationCookie)
	return h.sessions.enter(x, in, shell.Path)
}

// joinInvitation adds the signed-in person to the organization.
func (h *invitations) joinInvitation(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	page, err := h.offer(ctx, x)
	if err != nil {
		return h.deadLink(x, err)
	}
	if err := h.invitations.Join(ctx, s, x.Token(invitationCookie)); err != nil {
		return refused(x, "invitation", "", page, err)
	}
	x.RemoveToken(invitationCookie)
	return x.Redirect(http.StatusSeeOther, shell.Path)
}
