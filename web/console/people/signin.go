package people

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/console/shell"
)

// signIn serves the pages that start, confirm and end sessions.
type signIn struct {
	signIns   *account.SignIns
	links     *account.SignInLinks
	oidc      *account.OIDC
	people    *account.People
	members   *account.Members
	sessions  sessions
	publicURL string
	log       *slog.Logger
}

func (h *signIn) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/sign-in", shell.Public, h.showSignIn),
		shell.Post("/sign-in", shell.Public, h.signIn),
		shell.Post("/sign-in/link", shell.Public, h.mailSignInLink),
		shell.Get("/sign-in/code", shell.Public, h.showCode),
		shell.Post("/sign-in/code", shell.Public, h.signInCode),
		shell.Get("/oidc/start", shell.Public, h.startOIDC),
		shell.Get("/oidc/callback", shell.Public, h.finishOIDC),
		shell.Post("/sign-out", shell.Public, h.signOut),
		shell.Get("/confirm", shell.SignedIn, h.showConfirm),
		shell.Post("/confirm", shell.SignedIn, h.confirmPerson),
		shell.Post("/switch", shell.SignedIn, h.switchOrganization),
	}
}

// signInPage is the data of the sign-in page.
type signInPage struct {
	Next  string
	Email string
	OIDC  string // name of the identity provider; empty: none
	// Insecure reports whether browsers will refuse the session cookie.
	Insecure bool
	// Locked reports whether too many attempts failed. A link, mailed or made by an administrator, is
	// another way in.
	Locked, HasMail bool
}

func (h *signIn) signInPage(x *shell.Request) signInPage {
	name, _ := h.oidc.Name()
	return signInPage{Next: x.Next(), Email: x.Form("email"), OIDC: name, Insecure: isInsecure(h.publicURL)}
}

// isInsecure reports whether browsers refuse HTTPS-only cookies from an address. They accept them from
// their own machine.
func isInsecure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}

func (h *signIn) showSignIn(x *shell.Request) error {
	if x.Actor.Kind != 0 {
		return x.Redirect(http.StatusSeeOther, x.Next())
	}
	return x.Page("sign-in", h.signInPage(x))
}

func (h *signIn) signIn(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	in, err := h.signIns.SignIn(ctx, x.Form("email"), x.Form("password"), x.Client())
	if err != nil {
		return refused(x, "sign-in", "", h.lockedPage(x, err), err)
	}
	return h.sessions.enter(x, in, x.Next())
}

// lockedPage returns the sign-in page with another way in if too many attempts failed.
func (h *signIn) lockedPage(x *shell.Request, err error) signInPage {
	page := h.signInPage(x)
	page.Locked, page.HasMail = errors.As(err, new(*account.RateError)), h.links.CanMail()
	return page
}

// mailSignInLink mails a link that marks the browser as known. The answer does not reveal whether
// the address has an account.
func (h *signIn) mailSignInLink(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	if err := h.links.Mail(ctx, x.Form("email"), x.Client()); err != nil {
		return refused(x, "sign-in", "", h.lockedPage(x, err), err)
	}
	return x.Redirect(http.StatusSeeOther, shell.Path+"/sign-in?done=link-mailed&next="+url.QueryEscape(x.Next()))
}

func (h *signIn) showCode(x *shell.Request) error {
	if x.Token(pendingCookie) == "" {
		return x.Redirect(http.StatusSeeOther, shell.Path+"/sign-in?next="+url.QueryEscape(x.Next()))
	}
	return x.Page("sign-in-code", h.signInPage(x))
}

func (h *signIn) signInCode(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	in, err := h.signIns.EnterCode(ctx, x.Token(pendingCookie), x.Form("code"), x.Client())
	if errors.Is(err, account.ErrSignedOut) {
		x.RemoveToken(pendingCookie)
		return x.Redirect(http.StatusSeeOther, shell.Path+"/sign-in?done=sign-in-late&next="+url.QueryEscape(x.Next()))
	}
	if err != nil {
		return refused(x, "sign-in-code", "code", h.signInPage(x), err)
	}
	return h.sessions.enter(x, in, x.Next())
}

// startOIDC redirects to the identity provider, to sign in or to confirm an identity.
func (h *signIn) startOIDC(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	var s *account.Session
	if x.QueryParam("confirm") != "" {
		signedIn, err := h.sessions.of(ctx, x)
		if err != nil {
			return err
		}
		s = &signedIn
	}
	start, err := h.oidc.Start(ctx, s)
	if errors.Is(err, account.ErrNoOIDC) {
		return account.ErrNotFound
	}
	if err != nil {
		return refused(x, "sign-in", "", h.signInPage(x), err)
	}
	x.SetToken(oidcCookie, start.Cookie, account.OIDCLife)
	x.SetToken(oidcNextCookie, url.QueryEscape(x.Next()), account.OIDCLife)
	return x.Redirect(http.StatusSeeOther, start.URL)
}

// finishOIDC handles the return from the identity provider. A confirmation continues the current
// session.
func (h *signIn) finishOIDC(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	cookie := x.Token(oidcCookie)
	next, _ := url.QueryUnescape(x.Token(oidcNextCookie))
	next = shell.SafeNext(next)
	x.RemoveToken(oidcCookie)
	x.RemoveToken(oidcNextCookie)
	in, err := h.oidc.Finish(ctx, cookie, x.QueryParams(), x.Client())
	if errors.Is(err, account.ErrSignedOut) {
		return x.Redirect(http.StatusSeeOther, shell.Path+"/sign-in?done=sign-in-late&next="+url.QueryEscape(next))
	}
	if err != nil {
		if errors.Is(err, account.ErrOIDC) {
			h.log.Warn("sign-in by OpenID Connect failed", "err", err)
		}
		page := h.signInPage(x)
		page.Next = next
		return refused(x, "sign-in", "", page, err)
	}
	if in.TookOver {
		next = shell.Path + "/account?done=password-removed"
	}
	return h.sessions.enter(x, in, next)
}

func (h *signIn) signOut(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	if err := h.sessions.SignOut(ctx, x.Token(shell.SessionCookie)); err != nil {
		return err
	}
	x.RemoveToken(shell.SessionCookie)
	x.Response().Header().Set("Clear-Site-Data", `"cache"`)
	return x.Done("/sign-in", "signed-out")
}

// confirmPage is the data of the page that asks people to confirm their identity.
type confirmPage struct {
	Next        string
	HasPassword bool
	OIDC        string
}

func (h *signIn) confirmPage(x *shell.Request, s account.Session) confirmPage {
	name, _ := h.oidc.Name()
	return confirmPage{Next: x.Next(), HasPassword: s.HasPassword, OIDC: name}
}

func (h *signIn) showConfirm(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	return x.Page("confirm", h.confirmPage(x, s))
}

func (h *signIn) confirmPerson(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	token, err := h.people.Confirm(ctx, s, x.Form("password"))
	if err != nil {
		return refused(x, "confirm", "password", h.confirmPage(x, s), err)
	}
	x.SetSession(token)
	return x.Redirect(http.StatusSeeOther, x.Next())
}

// switchOrganization switches the session to another organization of the person.
func (h *signIn) switchOrganization(x *shell.Request) error {
	ctx, stop := x.Wait()
	defer stop()
	s, err := h.sessions.of(ctx, x)
	if err != nil {
		return err
	}
	list, err := h.members.Memberships(ctx, s)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Slug == x.Form("organization") {
			if err := h.sessions.Switch(ctx, s, m.ID); err != nil {
				return err
			}
			return x.Done("/rooms", "")
		}
	}
	return account.ErrNotFound
}
