package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/shell"
)

// accountsRoutes are those of all pages about people and organizations.
func (c *Console) accountsRoutes() []route {
	if c.Accounts == nil {
		return nil
	}
	return slices.Concat(c.signInRoutes(), c.invitationRoutes(), c.accountRoutes(), c.organizationRoutes(), c.tokenRoutes())
}

// signInRoutes are those by which people come and go.
func (c *Console) signInRoutes() []route {
	return []route{
		{GET, "/sign-in", Public, c.showSignIn},
		{POST, "/sign-in", Public, c.signIn},
		{POST, "/sign-in/link", Public, c.mailSignInLink},
		{GET, "/sign-in/code", Public, c.showCode},
		{POST, "/sign-in/code", Public, c.signInCode},
		{GET, "/oidc/start", Public, c.startOIDC},
		{GET, "/oidc/callback", Public, c.finishOIDC},
		{POST, "/sign-out", Public, c.signOut},
		{GET, "/confirm", SignedIn, c.showConfirm},
		{POST, "/confirm", SignedIn, c.confirmPerson},
		{POST, "/switch", SignedIn, c.switchOrganization},
	}
}

// IdentifyBy returns the [Options.Identify] of accounts.
func IdentifyBy(a *account.Accounts) func(context.Context, string) (Identity, error) {
	return func(ctx context.Context, token string) (Identity, error) {
		s, err := a.Sessions.Get(ctx, token)
		if errors.Is(err, account.ErrSignedOut) {
			return Identity{}, ErrSignIn
		}
		if err != nil {
			return Identity{}, err
		}
		memberships, err := a.Members.Memberships(ctx, s)
		if err != nil {
			return Identity{}, err
		}
		who := Identity{
			Actor: s.Actor(), Name: s.Name, Organization: shell.Organization{Slug: s.Org.Slug, Name: s.Org.Name},
			Confirmed: s.Confirmed, MustEnrol: s.MustEnrol(),
		}
		for _, m := range memberships {
			who.Organizations = append(who.Organizations, shell.Organization{Slug: m.Slug, Name: m.Name})
		}
		return who, nil
	}
}

// session returns the session of the browser that asks.
func (x *request) session(ctx context.Context) (account.Session, error) {
	s, err := x.console.Accounts.Sessions.Get(ctx, x.kept(SessionCookie))
	if errors.Is(err, account.ErrSignedOut) {
		return s, ErrSignIn
	}
	return s, err
}

// sudo is around what is sensitive: people prove who they are a short time
// before.
func (c *Console) sudo(handle func(*request) error) func(*request) error {
	return func(x *request) error {
		if !x.isFresh() {
			return ErrConfirm
		}
		return handle(x)
	}
}

// isFresh tells whether the person has proven who it is a short time ago.
func (x *request) isFresh() bool {
	return x.console.Now().Sub(x.Identity.Confirmed) < account.ConfirmedLife
}

// refused answers with a page again, when err says something about what was
// sent that people can act on: field is where the page shows it, "" for its
// head. Any other error is returned.
func (x *request) refused(page, field string, data any, err error) error {
	if wrong := (*invalid.Error)(nil); errors.As(err, &wrong) {
		return x.invalid(page, data, err)
	}
	if errors.Is(err, account.ErrSignedOut) {
		return ErrSignIn // the session ended meanwhile
	}
	status := 0
	if soon := (*account.RateError)(nil); errors.As(err, &soon) {
		status = http.StatusTooManyRequests
		x.Response().Header().Set("Retry-After", fmt.Sprint(int64((soon.Wait+time.Second-1)/time.Second)))
		err = soon
	}
	if limit, ok := errors.AsType[*account.LimitError](err); ok {
		status, err = http.StatusConflict, limit
	}
	for _, known := range refusals {
		if errors.Is(err, known.err) {
			status, err = known.status, known.err
		}
	}
	if status == 0 {
		return err
	}
	return x.render(status, page, view{Data: data, Problems: invalid.List{{Field: field, Detail: sentence(err)}}})
}

// refusals are errors that pages say, and their status.
var refusals = []struct {
	err    error
	status int
}{
	{account.ErrCredentials, http.StatusForbidden},
	{account.ErrLastOwner, http.StatusConflict},
	{account.ErrExists, http.StatusConflict},
	{account.ErrInUse, http.StatusConflict},
	{account.ErrUnverified, http.StatusConflict},
	{account.ErrOtherPerson, http.StatusConflict},
	{account.ErrLink, http.StatusGone},
	{account.ErrOIDC, http.StatusForbidden},
	{account.ErrNoAccount, http.StatusForbidden},
}

// sentence writes an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return string(text[0]-'a'+'A') + text[1:] + "."
}

// signInPage is what the page for signing in shows.
type signInPage struct {
	Next  string
	Email string
	OIDC  string // name of the issuer, empty for none
	// Insecure tells that browsers will keep no cookies, and so no session.
	Insecure bool
	// Locked: too many attempts failed, and there is another way in, by a link
	// that is mailed or that an administrator makes.
	Locked, HasMail bool
}

func (x *request) signInPage() signInPage {
	name, _ := x.console.Accounts.OIDC.Name()
	return signInPage{Next: x.next(), Email: x.form("email"), OIDC: name, Insecure: isInsecure(x.console.PublicURL)}
}

// isInsecure tells whether browsers refuse cookies that are for HTTPS alone from
// an address: they make an exception of their own machine.
func isInsecure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}

func (c *Console) showSignIn(x *request) error {
	if x.Actor.Kind != 0 {
		return x.Redirect(http.StatusSeeOther, x.next())
	}
	return x.page("sign-in", x.signInPage())
}

func (c *Console) signIn(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	in, err := c.Accounts.SignIns.SignIn(ctx, x.form("email"), x.form("password"), x.client())
	if err != nil {
		return x.refused("sign-in", "", x.lockedPage(err), err)
	}
	return x.enter(in, x.next())
}

// lockedPage is the page for signing in, with another way in where too many
// attempts failed.
func (x *request) lockedPage(err error) signInPage {
	page := x.signInPage()
	page.Locked, page.HasMail = errors.As(err, new(*account.RateError)), x.console.Accounts.SignInLinks.CanMail()
	return page
}

// mailSignInLink mails a link that makes a browser known. The answer does not
// show whether the address has an account.
func (c *Console) mailSignInLink(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	if err := c.Accounts.SignInLinks.Mail(ctx, x.form("email"), x.client()); err != nil {
		return x.refused("sign-in", "", x.lockedPage(err), err)
	}
	return x.Redirect(http.StatusSeeOther, Path+"/sign-in?done=link-mailed&next="+url.QueryEscape(x.next()))
}

// enter keeps what a sign-in leads to, and goes on. A session from before ends:
// nobody else's goes on under a new name.
func (x *request) enter(in account.SignedIn, next string) error {
	if in.Known != "" {
		x.SetKnown(in.Known)
	}
	if in.Pending != "" {
		x.keep(pendingCookie, in.Pending, account.PendingLife)
		return x.Redirect(http.StatusSeeOther, Path+"/sign-in/code?next="+url.QueryEscape(next))
	}
	if before := x.kept(SessionCookie); before != "" {
		if err := x.console.Accounts.Sessions.SignOut(x.Request().Context(), before); err != nil {
			return err
		}
	}
	x.forget(pendingCookie)
	x.keepSession(in.Token)
	return x.Redirect(http.StatusSeeOther, next)
}

func (c *Console) showCode(x *request) error {
	if x.kept(pendingCookie) == "" {
		return x.Redirect(http.StatusSeeOther, Path+"/sign-in?next="+url.QueryEscape(x.next()))
	}
	return x.page("sign-in-code", x.signInPage())
}

func (c *Console) signInCode(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	in, err := c.Accounts.SignIns.EnterCode(ctx, x.kept(pendingCookie), x.form("code"), x.client())
	if errors.Is(err, account.ErrSignedOut) {
		x.forget(pendingCookie)
		return x.Redirect(http.StatusSeeOther, Path+"/sign-in?done=sign-in-late&next="+url.QueryEscape(x.next()))
	}
	if err != nil {
		return x.refused("sign-in-code", "code", x.signInPage(), err)
	}
	return x.enter(in, x.next())
}

// startOIDC sends people to the issuer: to sign in, or to confirm who it is.
func (c *Console) startOIDC(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	var s *account.Session
	if x.QueryParam("confirm") != "" {
		signedIn, err := x.session(ctx)
		if err != nil {
			return err
		}
		s = &signedIn
	}
	start, err := c.Accounts.OIDC.Start(ctx, s)
	if errors.Is(err, account.ErrNoOIDC) {
		return account.ErrNotFound
	}
	if err != nil {
		return x.refused("sign-in", "", x.signInPage(), err)
	}
	x.keep(oidcCookie, start.Cookie, account.OIDCLife)
	x.keep(oidcNextCookie, url.QueryEscape(x.next()), account.OIDCLife)
	return x.Redirect(http.StatusSeeOther, start.URL)
}

// finishOIDC takes people back from the issuer. A proof of who it is goes on
// in the session that there is.
func (c *Console) finishOIDC(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	cookie := x.kept(oidcCookie)
	next, _ := url.QueryUnescape(x.kept(oidcNextCookie))
	next = safeNext(next)
	x.forget(oidcCookie)
	x.forget(oidcNextCookie)
	in, err := c.Accounts.OIDC.Finish(ctx, cookie, x.QueryParams(), x.client())
	if errors.Is(err, account.ErrSignedOut) {
		return x.Redirect(http.StatusSeeOther, Path+"/sign-in?done=sign-in-late&next="+url.QueryEscape(next))
	}
	if err != nil {
		if errors.Is(err, account.ErrOIDC) {
			c.Log.Warn("sign-in by OpenID Connect failed", "err", err)
		}
		page := x.signInPage()
		page.Next = next
		return x.refused("sign-in", "", page, err)
	}
	if in.TookOver {
		next = Path + "/account?done=password-removed"
	}
	return x.enter(in, next)
}

func (c *Console) signOut(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	if err := c.Accounts.Sessions.SignOut(ctx, x.kept(SessionCookie)); err != nil {
		return err
	}
	x.forget(SessionCookie)
	x.Response().Header().Set("Clear-Site-Data", `"cache"`)
	return x.done("/sign-in", "signed-out")
}

// confirmPage is what the page shows that asks who it is.
type confirmPage struct {
	Next        string
	HasPassword bool
	OIDC        string
}

func (x *request) confirmPage(s account.Session) confirmPage {
	name, _ := x.console.Accounts.OIDC.Name()
	return confirmPage{Next: x.next(), HasPassword: s.HasPassword, OIDC: name}
}

func (c *Console) showConfirm(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	return x.page("confirm", x.confirmPage(s))
}

func (c *Console) confirmPerson(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	token, err := c.Accounts.People.Confirm(ctx, s, x.form("password"))
	if err != nil {
		return x.refused("confirm", "password", x.confirmPage(s), err)
	}
	x.keepSession(token)
	return x.Redirect(http.StatusSeeOther, x.next())
}

// switchOrganization goes to another organization of the person.
func (c *Console) switchOrganization(x *request) error {
	ctx, stop := x.wait()
	defer stop()
	s, err := x.session(ctx)
	if err != nil {
		return err
	}
	list, err := c.Accounts.Members.Memberships(ctx, s)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Slug == x.form("organization") {
			if err := c.Accounts.Sessions.Switch(ctx, s, m.ID); err != nil {
				return err
			}
			return x.done("/rooms", "")
		}
	}
	return account.ErrNotFound
}
