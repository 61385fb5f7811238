package people_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/oidctest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web/console/shell"
)

func TestSetupPages(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	link, err := w.Accounts.Invitations.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := w.Browser("192.0.2.1")
	v.Get("/console/setup").Want(http.StatusOK).Has(`data-island="link"`, "Set up Proofline")
	v.Post("/console/invitation", "token", "nonsense").Want(http.StatusGone).Has("expired")
	v.Get("/console/invitation/accept").Want(http.StatusGone)
	_, token, _ := strings.Cut(link, "#t=")
	v.Post("/console/invitation", "token", " "+token+" ").RedirectsTo("/console/invitation/accept").Lacks(token)
	wrong := v.Post("/console/invitation/accept", "organization", "", "email", "owner", "name", "Ow<b>ner", "password", "short")
	wrong.Want(http.StatusBadRequest).Has(`id="e-organization"`, `id="e-email"`, `id="e-password"`, `value="Ow&lt;b&gt;ner"`).Lacks("short", "<b>", "no value")
	v.Post("/console/invitation/accept", "organization", "Halls", "email", "owner@example.com", "name", "Owner", "password", consoletest.GoodPassword).RedirectsTo("/console")
	v.Get("/console/account").Want(http.StatusOK).Has("owner@example.com", "Your role in Halls: owner", "this one")
	w.Browser("192.0.2.9").Post("/console/invitation", "token", token).Want(http.StatusGone)
	if _, ok := v.Cookies["__Host-proofline.invitation"]; ok {
		t.Error("the token of the link is still in the browser")
	}
}

// TestCookies checks that only this host can set or read the browser's cookies.
func TestCookies(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	names := []string{}
	for _, c := range v.Set {
		names = append(names, c.Name)
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %s", c)
		}
	}
	for _, want := range []string{shell.SessionCookie, "__Host-proofline.known"} {
		if !slices.Contains(names, want) {
			t.Errorf("no cookie %s in %v", want, names)
		}
	}
}

// TestFixation signs in with a session cookie that an attacker has set.
func TestFixation(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	attacker := owner.Invite("stranger@example.com", "viewer")
	victim := w.Browser("192.0.2.4")
	victim.Cookies[shell.SessionCookie] = attacker.Session()
	planted := victim.Session()
	victim.Post("/console/sign-in", "email", "owner@example.com", "password", consoletest.GoodPassword, "next", "/console/account").RedirectsTo("/console/account")
	if victim.Session() == planted || victim.Session() == owner.Session() {
		t.Error("the session has a token from before")
	}
	attacker.Get("/console/account").RedirectsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	victim.Get("/console/account").Want(http.StatusOK).Has("owner@example.com")

	before := victim.Session()
	w.Pass(account.ConfirmedLife)
	victim.Post("/console/confirm", "password", "wrong").Want(http.StatusForbidden)
	if victim.Session() != before {
		t.Error("a wrong password rotates the token")
	}
	victim.Post("/console/confirm", "password", consoletest.GoodPassword, "next", "/console/tokens").RedirectsTo("/console/tokens")
	if victim.Session() == before {
		t.Error("the confirmed session has the token from before")
	}
	thief := w.Browser("192.0.2.5")
	thief.Cookies[shell.SessionCookie] = before
	thief.Get("/console/account").RedirectsTo("/console/sign-in?next=%2Fconsole%2Faccount")
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	stolen := v.Session()
	v.Post("/console/sign-out").RedirectsTo("/console/sign-in?done=signed-out")
	if v.Session() != "" {
		t.Error("the cookie is still there")
	}
	v.Cookies[shell.SessionCookie] = stolen
	v.Get("/console/account").RedirectsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.Get("/console/sign-in?done=signed-out").Want(http.StatusOK).Has("You are signed out.").Lacks("no value")
}

// TestBruteForce guesses passwords of an account that exists and of one that does not: the responses are the
// same, and after five guesses a network has to wait.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	w.Setup()
	var said [2][]string
	for i, email := range []string{"owner@example.com", "stranger@example.com"} {
		for n := range 7 {
			a := w.Browser("198.51.100."+string(rune('1'+i))).Post("/console/sign-in", "email", email, "password", "wrong password")
			said[i] = append(said[i], http.StatusText(a.Status)+" "+a.Header.Get("Retry-After")+strings.ReplaceAll(a.Body, email, "EMAIL"))
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusTooManyRequests}[n < 5]; a.Status != want {
				t.Errorf("guess %d at %s: %d, want %d", n, email, a.Status, want)
			}
			if n >= 5 && a.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.Header.Get("Retry-After"))
			}
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Errorf("the answers tell accounts apart:\n%q\n%q", said[0], said[1])
	}
}

// TestWayIn: if many networks guess at an account, its owner can still sign in from a new browser in two
// ways, with a mailed link and with one that an administrator creates.
func TestWayIn(t *testing.T) {
	t.Parallel()
	for _, mailed := range []bool{true, false} {
		box := &postbox{}
		w := consoletest.NewTown(t, func(o *account.Options) {
			if mailed {
				o.Mailer = box
			}
		})
		w.Setup()
		for n := range 60 {
			w.Browser(fmt.Sprintf("198.51.%d.%d", 100+n%2, n)).Post("/console/sign-in", "email", "owner@example.com", "password", "wrong password")
		}
		one := w.Browser("192.0.2.99")
		signIn := []string{"email", "owner@example.com", "password", consoletest.GoodPassword, "next", "/console/rooms"}
		locked := one.Post("/console/sign-in", signIn...).Want(http.StatusTooManyRequests).Has("Another way in")
		link := ""
		if mailed {
			locked.Has(`action="/console/sign-in/link"`)
			one.Post("/console/sign-in/link", "email", "owner@example.com", "next", "/console/rooms").RedirectsTo("/console/sign-in?done=link-mailed&next=%2Fconsole%2Frooms")
			w.Accounts.Close()
			link = box.link()
		} else {
			locked.Has("proofline account sign-in-link").Lacks(`action="/console/sign-in/link"`)
			var err error
			if link, err = w.Accounts.SignInLinks.Make(t.Context(), account.ServerActor(account.MainOrg), "owner@example.com"); err != nil {
				t.Fatal(err)
			}
		}
		one.Post("/console/invitation", "token", link).RedirectsTo("/console/sign-in?done=browser-known")
		one.Get("/console/sign-in?done=browser-known").Has("This browser can sign in now")
		one.Post("/console/sign-in", signIn...).RedirectsTo("/console/rooms")
		w.Browser("192.0.2.98").Post("/console/invitation", "token", link).Want(http.StatusGone)
		w.Browser("192.0.2.97").Post("/console/sign-in", signIn...).Want(http.StatusTooManyRequests)
	}
}

// postbox keeps the latest mail.
type postbox struct {
	mu   sync.Mutex
	text string
}

func (p *postbox) Send(_ context.Context, _, _, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	return nil
}

// link returns the line of the mail that is a link.
func (p *postbox) link() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return regexp.MustCompile(`https://\S+`).FindString(p.text)
}

// TestTiming compares the shortest durations of several refusals, measured in turn. If unknown addresses were
// not hashed, theirs would be a tenth of the others. A busy machine may now and then slow one of them down.
func TestTiming(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t, func(o *account.Options) { o.Cost = account.DefaultCost })
	w.Setup()
	const known, unknown = "owner@example.com", "stranger@example.com"
	quickest := map[string]time.Duration{known: time.Hour, unknown: time.Hour}
	for i := range 40 {
		for _, email := range []string{known, unknown} {
			began := time.Now()
			w.Browser("198.51.100.1").Post("/console/sign-in", "email", email, "password", "wrong password").Want(http.StatusForbidden)
			quickest[email] = min(quickest[email], time.Since(began))
		}
		w.Pass(time.Hour)
		if i >= 7 && quickest[known] <= 3*quickest[unknown] {
			return
		}
	}
	t.Errorf("%v for an account that exists, %v for none", quickest[known], quickest[unknown])
}

// pathOf fills in the parameters of a route.
func pathOf(r shell.Listed) string {
	return strings.NewReplacer(":id", uuid.NewString(), ":delivery", uuid.NewString()).Replace(r.Path)
}

// TestPeopleRoutes requests the routes of accounts as callers without permission.
func TestPeopleRoutes(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	viewer := owner.Invite("member@example.com", "viewer")
	posts := 0
	for _, r := range w.Routes() {
		if r.Part != "people" {
			continue
		}
		path, name := pathOf(r), r.Method+" "+r.Path
		if r.Scope != shell.Public {
			if a := w.Browser("192.0.2.8").Do(r.Method, path, ""); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/console/sign-in?next=") {
				t.Errorf("%s without a session: %d", name, a.Status)
			}
		}
		if r.Scope == account.Admin {
			if a := viewer.Do(r.Method, path, ""); a.Status != http.StatusForbidden {
				t.Errorf("%s by a viewer: %d", name, a.Status)
			}
		}
		if r.Method != http.MethodPost {
			continue
		}
		posts++
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example"} {
			if a := owner.Do(http.MethodPost, path, "", header); a.Status != http.StatusForbidden {
				t.Errorf("%s with %s: %d", name, header, a.Status)
			}
		}
	}
	if posts < 20 {
		t.Errorf("%d routes that change something", posts)
	}
	owner.Get("/console/account").Want(http.StatusOK)
}

// TestSudo performs sensitive actions long after the sign-in.
func TestSudo(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	w.Pass(account.ConfirmedLife)
	asked := 0
	for _, r := range w.Routes() {
		if r.Part != "people" {
			continue
		}
		if r.Method != http.MethodPost || r.Scope != account.Admin {
			continue
		}
		asked++
		a := owner.Do(http.MethodPost, pathOf(r), "", "Referer: https://example.com/console/tokens")
		a.RedirectsTo("/console/confirm?next=%2Fconsole%2Ftokens")
	}
	if asked < 10 {
		t.Errorf("%d sensitive routes", asked)
	}
	for _, path := range []string{"/account/second-factor", "/account/second-factor/remove", "/account/recovery-codes"} {
		owner.Post(shell.Path + path).RedirectsTo("/console/confirm?next=%2Fconsole")
	}
	for _, path := range []string{"/organization", "/tokens", "/account/second-factor"} {
		owner.Get(shell.Path + path).Want(http.StatusOK).Has("Confirm that it is you")
	}
	owner.Get("/console/confirm?next=/console/tokens").Want(http.StatusOK).Has(`value="/console/tokens"`)
	owner.Post("/console/confirm", "password", consoletest.GoodPassword, "next", "/console/tokens").RedirectsTo("/console/tokens")
	owner.Get("/console/tokens").Want(http.StatusOK).Has("Create the token").Lacks("Confirm that it is you", "no value")
}

func TestFactorPages(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	v.Get("/console/account/second-factor").Want(http.StatusOK).Has("Set it up")
	v.Post("/console/account/second-factor").RedirectsTo("/console/account/second-factor")
	page := v.Get("/console/account/second-factor").Want(http.StatusOK).Has("<svg class=\"qr\"", "otpauth://totp/").Lacks("data:", "ZgotmplZ", "no value")
	secret := strings.ReplaceAll(regexp.MustCompile(`id="secret">([A-Z2-7 ]+)<`).FindStringSubmatch(page.Body)[1], " ", "")
	code := func() string {
		c, err := totp.GenerateCode(secret, w.Clock())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	v.Post("/console/account/second-factor/confirm", "code", "000000").Want(http.StatusBadRequest).Has("<svg", "is not the code that the app shows now")
	before := v.Session()
	page = v.Post("/console/account/second-factor/confirm", "code", code()).Want(http.StatusOK)
	codes := regexp.MustCompile(`<li>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</li>`).FindAllStringSubmatch(page.Body, -1)
	if len(codes) != account.RecoveryCodes || v.Session() == before {
		t.Fatalf("%d recovery codes, token rotated: %t", len(codes), v.Session() != before)
	}
	w.Pass(time.Minute)
	signIn := func() *consoletest.Visit {
		other := w.Browser("192.0.2.6")
		other.Post("/console/sign-in", "email", "owner@example.com", "password", consoletest.GoodPassword, "next", "/console/tokens").RedirectsTo("/console/sign-in/code?next=%2Fconsole%2Ftokens")
		if other.Session() != "" {
			t.Fatal("signed in without a code")
		}
		other.Get("/console/sign-in/code?next=/console/tokens").Want(http.StatusOK).Has("one-time-code")
		return other
	}
	used := code()
	one := signIn()
	one.Post("/console/sign-in/code", "code", used, "next", "/console/tokens").RedirectsTo("/console/tokens")
	one.Get("/console/tokens").Want(http.StatusOK)
	two := signIn()
	two.Post("/console/sign-in/code", "code", used).Want(http.StatusForbidden)
	two.Post("/console/sign-in/code", "code", codes[0][1]).RedirectsTo("/console")
	three := signIn()
	three.Post("/console/sign-in/code", "code", codes[0][1]).Want(http.StatusForbidden)
	three.Get("/console/account").RedirectsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.Get("/console/account/second-factor").Want(http.StatusOK).Has("<strong>9</strong>")
	v.Post("/console/account/recovery-codes").Want(http.StatusOK).Has("Create new recovery codes?").Lacks("id=\"codes\"")
	v.Post("/console/account/recovery-codes", "confirmed", "1").Want(http.StatusOK).Lacks(codes[5][1])
	w.Pass(time.Minute)
	v.Post("/console/account/second-factor/remove", "password", "wrong", "code", code()).Want(http.StatusForbidden)
	v.Post("/console/account/second-factor/remove", "password", consoletest.GoodPassword, "code", code()).RedirectsTo("/console/account/second-factor?done=factor-removed")
	w.Pass(account.PendingLife)
	three.Post("/console/sign-in/code", "code", code()).RedirectsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
}

func TestMustEnrol(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	owner.Post("/console/organization", "name", "Halls", "require_second_factor", "1").Want(http.StatusBadRequest).Has("needs a second factor on your own account first")
	viewer := owner.Invite("member@example.com", "viewer")
	if _, err := w.Accounts.Organizations.Change(t.Context(), account.ServerActor(account.MainOrg), account.OrganizationChange{RequireFactor: new(true)}); err != nil {
		t.Fatal(err)
	}
	viewer.Get("/console/organization").RedirectsTo("/console/account/second-factor?done=must-enrol")
	viewer.Get("/console/account/second-factor?done=must-enrol").Want(http.StatusOK).Has("requires a second factor")
	viewer.Get("/console/account").Want(http.StatusOK)
}

// TestOrganizationLogo uploads an image, shows it, and removes it; a form from another organization's page
// has no effect.
func TestOrganizationLogo(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	w.Create(consoletest.Owner, room.Config{Slug: "sale"})
	owner := w.Setup()
	operator := owner.Invite("member@example.com", "operator")
	const path = "/console/organization"
	send := func(v *consoletest.Visit, image string, pairs ...string) consoletest.Answer {
		t.Helper()
		body, kind := consoletest.Multipart(t, []consoletest.File{{Field: "logo_file", Content: image}}, pairs...)
		return v.Do(http.MethodPost, path+"/logo", body, "Content-Type: "+kind)
	}
	dot := consoletest.PNG(t, 3)
	operator.Get(path).Want(http.StatusOK).Lacks("logo_file")
	send(operator, dot).Want(http.StatusForbidden)
	send(owner, dot, "in_organization", "other").Want(http.StatusConflict)
	send(owner, "no image").Want(http.StatusBadRequest).Has("The image", `id="e-logo"`)
	send(owner, "").Want(http.StatusBadRequest).Has("Choose an image first.")
	owner.Get(path + "/logo").Want(http.StatusNotFound)
	send(owner, dot, "in_organization", "main").RedirectsTo(path + "?done=organization-changed")
	owner.Get(path).Want(http.StatusOK).Has(`alt="The logo of Halls"`, "Remove the logo")
	if a := owner.Get(path + "/logo").Want(http.StatusOK); a.Body != dot || a.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the logo is %q, %s", a.Body, a.Header.Get("Content-Type"))
	}
	operator.Get("/console/rooms/sale/brand").Want(http.StatusOK).Has("the room shows the logo of")
	operator.Get("/console/rooms/sale/preview/frame").Want(http.StatusOK).Has(`<img src="data:image/png;base64,`)
	send(owner, "", "logo_remove", "1").RedirectsTo(path + "?done=organization-changed")
	owner.Get(path).Want(http.StatusOK).Lacks("Remove the logo")
	operator.Get("/console/rooms/sale/brand").Want(http.StatusOK).Lacks("the room shows the logo of")
	operator.Get("/console/rooms/sale/preview/frame").Want(http.StatusOK).Lacks("<img")
}

func TestMembersPage(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	member := owner.Invite("member@example.com", "operator")
	page := owner.Get("/console/organization").Want(http.StatusOK).Has("member@example.com", "Invite", "Custom hosts").Lacks("no value", "ZgotmplZ")
	id := regexp.MustCompile(`members/([0-9a-f-]{36})/remove`).FindStringSubmatch(page.Body)[1]
	member.Get("/console/organization").Want(http.StatusOK).Has("owner@example.com").Lacks("Invite", "/remove")
	self := regexp.MustCompile(`members/([0-9a-f-]{36})/role`).FindStringSubmatch(page.Body)[1]
	owner.Post("/console/organization/members/"+self+"/role", "role", "viewer").Want(http.StatusConflict).Has("at least one owner")
	owner.Post("/console/organization/leave", "confirmed", "1").Want(http.StatusConflict).Has("at least one owner")
	owner.Post("/console/organization/members/"+id+"/role", "role", "viewer").RedirectsTo("/console/organization?done=role-changed")
	owner.Post("/console/organization/members/"+id+"/role", "role", "king").Want(http.StatusBadRequest)
	owner.Post("/console/organization/members/" + id + "/remove").Want(http.StatusOK).Has("data-question")
	owner.Post("/console/organization/members/"+id+"/remove", "confirmed", "1").RedirectsTo("/console/organization?done=member-removed")
	member.Get("/console/organization").RedirectsTo("/console/sign-in?next=%2Fconsole%2Forganization")

	page = owner.Post("/console/organization/invitations", "email", "viewer@example.com", "role", "viewer").Want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=\S{43}`).FindString(page.Body)
	page = owner.Get("/console/organization").Has("viewer@example.com").Lacks(link)
	invited := regexp.MustCompile(`invitations/([0-9a-f-]{36})/remove`).FindStringSubmatch(page.Body)[1]
	owner.Post("/console/organization/invitations/" + invited + "/remove").RedirectsTo("/console/organization?done=uninvited")
	w.Browser("192.0.2.7").Post("/console/invitation", "token", link).Want(http.StatusGone)
	owner.Post("/console/organization/invitations", "email", "nobody", "role", "viewer").Want(http.StatusBadRequest).Has(`value="nobody"`, `id="e-email"`)
}

// TestJoinPages lets a person with an account join another organization.
func TestJoinPages(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	owner := w.Setup()
	other := w.Tenant("other")
	page := owner.Post("/console/organization/invitations", "email", "owner@other.example", "role", "viewer").Want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=\S{43}`).FindString(page.Body)
	guest := w.Browser("192.0.2.7")
	guest.Post("/console/invitation", "token", link).RedirectsTo("/console/invitation/accept")
	guest.Get("/console/invitation/accept").Want(http.StatusOK).Has("has an account").Lacks("new-password")
	guest.Post("/console/invitation/accept", "name", "X", "password", consoletest.GoodPassword).Want(http.StatusConflict)
	guest.Post("/console/invitation/join").RedirectsTo("/console/sign-in?next=%2Fconsole")
	owner.Cookies["__Host-proofline.invitation"] = guest.Cookies["__Host-proofline.invitation"]
	owner.Post("/console/invitation/join").Want(http.StatusConflict)
	other.Cookies["__Host-proofline.invitation"] = guest.Cookies["__Host-proofline.invitation"]
	other.Get("/console/invitation/accept").Want(http.StatusOK).Has("Join Halls")
	other.Post("/console/invitation/join").RedirectsTo("/console")
	other.Get("/console/account").Want(http.StatusOK).Has("Your role in Halls: viewer", "Switch to Tenant other")
	other.Post("/console/switch", "organization", "other").RedirectsTo("/console/rooms")
	other.Get("/console/account").Want(http.StatusOK).Has("Your role in Tenant other: owner")
	other.Post("/console/switch", "organization", "nowhere").Want(http.StatusNotFound)
}

func TestTokensPage(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	v.Get("/console/tokens").Want(http.StatusOK).Has("There are no tokens yet.").Lacks("no value")
	v.Post("/console/tokens", "name", " ", "days", "30").Want(http.StatusBadRequest).Has(`id="e-name"`, `id="e-scopes"`, `<option value="30" selected>`)
	v.Post("/console/tokens", "name", "ci", "scope", "root").Want(http.StatusBadRequest)
	page := v.Post("/console/tokens", "name", "shop <b>", "scope", "read", "scope", "pull", "days", "30").Want(http.StatusOK).Has("shop &lt;b&gt;")
	text := regexp.MustCompile(`plt_[A-Za-z0-9_-]{43}`).FindString(page.Body)
	actor, err := w.Accounts.Tokens.Authenticate(t.Context(), text)
	if err != nil || actor.Scopes != account.Read|account.Pull || actor.Org != account.MainOrg {
		t.Fatalf("%+v, %v", actor, err)
	}
	page = v.Get("/console/tokens").Has("read pull").Lacks(text)
	id := regexp.MustCompile(`/tokens/([0-9a-f-]{36})/revoke`).FindStringSubmatch(page.Body)[1]
	stranger := w.Tenant("other")
	stranger.Get("/console/tokens").Want(http.StatusOK).Lacks("shop &lt;")
	stranger.Post("/console/tokens/"+id+"/revoke", "confirmed", "1").Want(http.StatusNotFound)
	v.Post("/console/tokens/" + id + "/revoke").Want(http.StatusOK).Has("data-question")
	v.Post("/console/tokens/"+id+"/revoke", "confirmed", "1").RedirectsTo("/console/tokens?done=token-revoked")
	if _, err := w.Accounts.Tokens.Authenticate(t.Context(), text); !errors.Is(err, account.ErrToken) {
		t.Errorf("revoked: %v", err)
	}
}

// zone is an in-memory DNS.
type zone map[string][]string

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if values, ok := z[name]; ok {
		return values, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestHostsPage(t *testing.T) {
	t.Parallel()
	dns := zone{}
	w := consoletest.NewTown(t, func(o *account.Options) { o.Resolver = dns })
	v := w.Setup()
	v.Post("/console/organization/hosts", "host", "192.0.2.1").Want(http.StatusBadRequest).Has(`id="e-host"`)
	v.Post("/console/organization/hosts", "host", "Queue.Halls.example").RedirectsTo("/console/organization?done=host-added")
	page := v.Get("/console/organization").Want(http.StatusOK).Has("_proofline.queue.halls.example", "not verified")
	v.Post("/console/organization/hosts/verify", "claimed", "queue.halls.example").Want(http.StatusConflict).Has("TXT record is not in the DNS yet")
	dns["_proofline.queue.halls.example."] = regexp.MustCompile(`proofline-[a-z2-7]{32}`).FindAllString(page.Body, 1)
	stranger := w.Tenant("other")
	stranger.Post("/console/organization/hosts/verify", "claimed", "queue.halls.example").Want(http.StatusNotFound)
	stranger.Post("/console/organization/hosts/remove", "claimed", "queue.halls.example", "confirmed", "1").Want(http.StatusNotFound)
	stranger.Get("/console/organization").Want(http.StatusOK).Lacks("queue.halls.example", "owner@example.com")
	v.Post("/console/organization/hosts/verify", "claimed", "queue.halls.example").RedirectsTo("/console/organization?done=host-verified")
	v.Get("/console/organization").Want(http.StatusOK).Has(`<span class="badge good">verified</span>`).Lacks("_proofline.")
	v.Post("/console/organization/hosts/remove", "claimed", "queue.halls.example", "confirmed", "1").RedirectsTo("/console/organization?done=host-removed")
}

// TestQuotaShown shows the limits of an organization once it has some.
func TestQuotaShown(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	v.Get("/console/organization").Want(http.StatusOK).Lacks("quota-head")
	server := account.ServerActor(account.MainOrg)
	if _, err := w.Control.Quotas.Set(t.Context(), server, pgroom.Quota{Rooms: 3, Entries: 1}); err != nil {
		t.Fatal(err)
	}
	v.Get("/console/organization").Want(http.StatusOK).Has("quota-head", "Rooms that have not ended", `data-label="At most">3<`).Lacks("Visitors in line in all rooms")
}

func TestAccountPage(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	other := w.Browser("192.0.2.6")
	other.Post("/console/sign-in", "email", "owner@example.com", "password", consoletest.GoodPassword, "next", "https://evil.example").RedirectsTo("/console")
	page := v.Get("/console/account").Want(http.StatusOK).Lacks("no value")
	id := regexp.MustCompile(`sessions/([0-9a-f-]{36})/end`).FindStringSubmatch(page.Body)[1]
	stranger := w.Tenant("other")
	stranger.Post("/console/account/sessions/" + id + "/end").RedirectsTo("/console/account?done=session-ended")
	other.Get("/console/account").Want(http.StatusOK)
	v.Post("/console/account/sessions/" + id + "/end").RedirectsTo("/console/account?done=session-ended")
	other.Get("/console/account").RedirectsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.Post("/console/account/name", "name", "").Want(http.StatusBadRequest).Has(`id="e-name"`)
	v.Post("/console/account/name", "name", "Box Office").RedirectsTo("/console/account?done=name-changed")
	v.Post("/console/account/password", "current", "wrong", "password", "a new one for today").Want(http.StatusForbidden).Has(`id="e-current"`)
	v.Post("/console/account/password", "current", consoletest.GoodPassword, "password", "owner").Want(http.StatusBadRequest).Has(`id="e-password"`)
	before := v.Session()
	v.Post("/console/account/password", "current", consoletest.GoodPassword, "password", "a new one for today").RedirectsTo("/console/account?done=password-changed")
	if v.Session() == before {
		t.Error("the token is the one from before")
	}
	v.Get("/console/account").Want(http.StatusOK).Has("Box Office")
	v.Post("/console/account/sessions/end-others").RedirectsTo("/console/account?done=sessions-ended")
}

// TestOIDCPages signs in through an issuer, confirms through it, and returns in another browser.
func TestOIDCPages(t *testing.T) {
	t.Parallel()
	issuer := oidctest.Start(t)
	w := consoletest.NewTown(t, func(o *account.Options) {
		o.OIDC = &account.OIDCConfig{Issuer: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Name: "Keys & Co"}
	})
	owner := w.Setup()
	claims := map[string]any{"sub": "1", "email": "owner@example.com", "email_verified": true}
	v := w.Browser("192.0.2.6")
	v.Get("/console/sign-in?next=/console/tokens").Want(http.StatusOK).Has("Sign in with Keys &amp; Co", `href="/console/oidc/start?next=%2fconsole%2ftokens"`)
	start := v.Get("/console/oidc/start?next=/console/tokens").Want(http.StatusSeeOther)
	back := "/console/oidc/callback?" + issuer.Authorize(start.Header.Get("Location"), claims).Encode()
	w.Browser("192.0.2.7").Get(back).RedirectsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
	planted := owner.Session()
	v.Cookies[shell.SessionCookie] = planted
	v.Get(back).RedirectsTo("/console/account?done=password-removed")
	v.Get("/console/account?done=password-removed").Want(http.StatusOK).Has("Your password is removed")
	if v.Session() == planted {
		t.Error("the session has a token from before")
	}
	v.Get("/console/tokens").Want(http.StatusOK)
	v.Get(back).RedirectsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")

	w.Pass(account.ConfirmedLife)
	v.Get("/console/confirm?next=/console/tokens").Want(http.StatusOK).Has("Confirm with Keys &amp; Co")
	start = v.Get("/console/oidc/start?confirm=1&next=/console/tokens").Want(http.StatusSeeOther)
	claims["auth_time"] = w.Clock().Unix()
	before := v.Session()
	v.Get("/console/oidc/callback?" + issuer.Authorize(start.Header.Get("Location"), claims).Encode()).RedirectsTo("/console/tokens")
	if v.Session() == before {
		t.Error("the confirmed session has the token from before")
	}
	v.Get("/console/tokens").Want(http.StatusOK).Has("Create the token")

	stranger := w.Browser("192.0.2.8")
	start = stranger.Get("/console/oidc/start?next=https://evil.example").Want(http.StatusSeeOther)
	query := issuer.Authorize(start.Header.Get("Location"), map[string]any{"sub": "2", "email": "stranger@example.com", "email_verified": true})
	stranger.Get("/console/oidc/callback?" + query.Encode()).Want(http.StatusForbidden).Has("ask an owner")
	w.Browser("192.0.2.9").Get("/console/oidc/start?confirm=1").RedirectsTo("/console/sign-in?next=%2Fconsole%2Foidc%2Fstart%3Fconfirm%3D1")
}

func TestWithoutOIDC(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	v.Get("/console/oidc/start").Want(http.StatusNotFound)
	v.Get("/console/oidc/callback?code=1&state=2").RedirectsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
	v.Get("/console/account").Want(http.StatusOK)
}

// TestSiteTokens: the link on a site's page proposes a name and a scope, even if the person had to confirm
// their identity first.
func TestSiteTokens(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	v := w.Setup()
	const link = "/console/tokens?scope=connect&name=connector+of+shop"
	chosen := `value="connect" checked`
	v.Get(link).Want(http.StatusOK).Has(`value="connector of shop"`, chosen).Lacks(`value="admin" checked`)
	v.Get("/console/tokens").Want(http.StatusOK).Lacks("checked")
	w.Pass(account.ConfirmedLife)
	v.Get(link).Want(http.StatusOK).Has("/console/confirm?next=%2fconsole%2ftokens%3fscope%3dconnect")
}

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }
