package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/oidctest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/shell"
)

const goodPassword = "correct battery horse"

// town is a console with real accounts, and a clock that the test moves.
type town struct {
	*site
	accounts *account.Accounts

	mu  sync.Mutex
	now time.Time
}

// newTown starts a console with real accounts; options may be changed before.
func newTown(t testing.TB, change ...func(*account.Options)) *town {
	t.Helper()
	master := servertest.MasterKey(t)
	w := &town{now: time.Now()}
	o := account.Options{
		Store: pgaccount.NewStore(servertest.Pool(t, pgtest.URL(t))), Sealer: master, URL: "https://example.com", Host: "example.com",
		Now: w.clock, Cost: account.Cost{Memory: 64, Passes: 1, Threads: 1},
	}
	for _, f := range change {
		f(&o)
	}
	w.accounts = account.New(o)
	t.Cleanup(w.accounts.Close)
	w.site = newConsole(t, func(o *Options) {
		o.Accounts, o.Identify, o.Now = w.accounts, IdentifyBy(w.accounts), w.clock
		o.Describe = func(err error) shell.Problem {
			if errors.Is(err, account.ErrNotFound) {
				return shell.Problem{Status: http.StatusNotFound, Title: "Not found"}
			}
			return describe(err)
		}
	})
	return w
}

func (w *town) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *town) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// visit is a browser with cookies.
type visit struct {
	*town
	addr    string
	cookies map[string]string
	set     []*http.Cookie // of the newest answer
}

func (w *town) browser(addr string) *visit {
	return &visit{town: w, addr: addr, cookies: map[string]string{}}
}

// do sends a request with the cookies, and keeps those of the answer.
func (v *visit) do(method, path, body string, headers ...string) answer {
	v.Helper()
	var list []string
	for name, value := range v.cookies {
		list = append(list, name+"="+value)
	}
	headers = append(headers, "X-Forwarded-For: "+v.addr)
	if len(list) > 0 {
		headers = append(headers, "Cookie: "+strings.Join(list, "; "))
	}
	a := v.site.do(nobody, method, path, body, headers...)
	v.set = (&http.Response{Header: a.header}).Cookies()
	for _, c := range v.set {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return a
}

func (v *visit) get(path string) answer { v.Helper(); return v.do(GET, path, "") }

func (v *visit) post(path string, pairs ...string) answer {
	v.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.do(POST, path, form.Encode())
}

func (v *visit) token() string { return v.cookies[SessionCookie] }

// setup makes the first owner and returns its browser.
func (w *town) setup() *visit {
	w.Helper()
	link, err := w.accounts.Invitations.SetupLink(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	v := w.browser("192.0.2.1")
	v.post("/console/invitation", "token", link).leadsTo("/console/invitation/accept")
	v.get("/console/invitation/accept").want(http.StatusOK).has("Name of your organization")
	v.post("/console/invitation/accept", "organization", "Halls", "email", "owner@example.com", "name", "Owner", "password", goodPassword).leadsTo("/console")
	return v
}

// invite makes a member through the pages, and returns its browser.
func (v *visit) invite(email, role string) *visit {
	v.Helper()
	page := v.post("/console/organization/invitations", "email", email, "role", role).want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=[A-Za-z0-9_-]{43}`).FindString(page.body)
	other := v.browser("192.0.2.2")
	other.post("/console/invitation", "token", link).leadsTo("/console/invitation/accept")
	other.post("/console/invitation/accept", "name", "Somebody", "password", goodPassword).leadsTo("/console")
	return other
}

// tenant makes another organization and returns the browser of its owner.
func (w *town) tenant(slug string) *visit {
	w.Helper()
	server := account.ServerActor(account.MainOrg)
	if _, err := w.accounts.Organizations.Create(w.Context(), server, slug, "Tenant "+slug); err != nil {
		w.Fatal(err)
	}
	link, err := w.accounts.Invitations.OwnerLink(w.Context(), server, slug, "")
	if err != nil {
		w.Fatal(err)
	}
	v := w.browser("192.0.2.3")
	v.post("/console/invitation", "token", link).leadsTo("/console/invitation/accept")
	v.post("/console/invitation/accept", "email", "owner@"+slug+".example", "name", "Owner", "password", goodPassword).leadsTo("/console")
	return v
}

func TestSetupPages(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	link, err := w.accounts.Invitations.SetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := w.browser("192.0.2.1")
	v.get("/console/setup").want(http.StatusOK).has(`data-island="link"`, "Set Proofline up")
	v.post("/console/invitation", "token", "nonsense").want(http.StatusGone).has("expired")
	v.get("/console/invitation/accept").want(http.StatusGone)
	_, token, _ := strings.Cut(link, "#t=")
	v.post("/console/invitation", "token", " "+token+" ").leadsTo("/console/invitation/accept").lacks(token)
	wrong := v.post("/console/invitation/accept", "organization", "", "email", "owner", "name", "Ow<b>ner", "password", "short")
	wrong.want(http.StatusBadRequest).has(`id="e-organization"`, `id="e-email"`, `id="e-password"`, `value="Ow&lt;b&gt;ner"`).lacks("short", "<b>", "no value")
	v.post("/console/invitation/accept", "organization", "Halls", "email", "owner@example.com", "name", "Owner", "password", goodPassword).leadsTo("/console")
	v.get("/console/account").want(http.StatusOK).has("owner@example.com", "You are owner of Halls", "this one")
	w.browser("192.0.2.9").post("/console/invitation", "token", token).want(http.StatusGone)
	if _, ok := v.cookies[invitationCookie]; ok {
		t.Error("the token of the link is still in the browser")
	}
}

// TestCookies checks that nothing but this host can set or read what browsers
// keep.
func TestCookies(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	names := []string{}
	for _, c := range v.set {
		names = append(names, c.Name)
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %s", c)
		}
	}
	for _, want := range []string{SessionCookie, knownCookie} {
		if !slices.Contains(names, want) {
			t.Errorf("no cookie %s in %v", want, names)
		}
	}
}

// TestFixation signs in with a cookie that somebody else has put there.
func TestFixation(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	attacker := owner.invite("stranger@example.com", "viewer")
	victim := w.browser("192.0.2.4")
	victim.cookies[SessionCookie] = attacker.token()
	planted := victim.token()
	victim.post("/console/sign-in", "email", "owner@example.com", "password", goodPassword, "next", "/console/account").leadsTo("/console/account")
	if victim.token() == planted || victim.token() == owner.token() {
		t.Error("the session has a token from before")
	}
	attacker.get("/console/account").leadsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	victim.get("/console/account").want(http.StatusOK).has("owner@example.com")

	before := victim.token()
	w.pass(account.ConfirmedLife)
	victim.post("/console/confirm", "password", "wrong").want(http.StatusForbidden)
	if victim.token() != before {
		t.Error("a wrong password rotates the token")
	}
	victim.post("/console/confirm", "password", goodPassword, "next", "/console/tokens").leadsTo("/console/tokens")
	if victim.token() == before {
		t.Error("the confirmed session has the token from before")
	}
	thief := w.browser("192.0.2.5")
	thief.cookies[SessionCookie] = before
	thief.get("/console/account").leadsTo("/console/sign-in?next=%2Fconsole%2Faccount")
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	stolen := v.token()
	v.post("/console/sign-out").leadsTo("/console/sign-in?done=signed-out")
	if v.token() != "" {
		t.Error("the cookie is still there")
	}
	v.cookies[SessionCookie] = stolen
	v.get("/console/account").leadsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.get("/console/sign-in?done=signed-out").want(http.StatusOK).has("You are signed out.").lacks("no value")
}

// TestBruteForce guesses passwords of an account that exists and of one that
// does not: the answers are the same, and after five from a network it has to wait.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.setup()
	var said [2][]string
	for i, email := range []string{"owner@example.com", "stranger@example.com"} {
		for n := range 7 {
			a := w.browser("198.51.100."+string(rune('1'+i))).post("/console/sign-in", "email", email, "password", "wrong password")
			said[i] = append(said[i], http.StatusText(a.status)+" "+a.header.Get("Retry-After")+strings.ReplaceAll(a.body, email, "EMAIL"))
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusTooManyRequests}[n < 5]; a.status != want {
				t.Errorf("guess %d at %s: %d, want %d", n, email, a.status, want)
			}
			if n >= 5 && a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Errorf("the answers tell accounts apart:\n%q\n%q", said[0], said[1])
	}
}

// TestWayIn: guesses from everywhere at an account leave its person two ways in
// with a new browser, by a mailed link and by one that an administrator makes.
func TestWayIn(t *testing.T) {
	t.Parallel()
	for _, mailed := range []bool{true, false} {
		box := &postbox{}
		w := newTown(t, func(o *account.Options) {
			if mailed {
				o.Mailer = box
			}
		})
		w.setup()
		for n := range 60 {
			w.browser(fmt.Sprintf("198.51.%d.%d", 100+n%2, n)).post("/console/sign-in", "email", "owner@example.com", "password", "wrong password")
		}
		one := w.browser("192.0.2.99")
		signIn := []string{"email", "owner@example.com", "password", goodPassword, "next", "/console/rooms"}
		locked := one.post("/console/sign-in", signIn...).want(http.StatusTooManyRequests).has("Another way in")
		link := ""
		if mailed {
			locked.has(`action="/console/sign-in/link"`)
			one.post("/console/sign-in/link", "email", "owner@example.com", "next", "/console/rooms").leadsTo("/console/sign-in?done=link-mailed&next=%2Fconsole%2Frooms")
			w.accounts.Close()
			link = box.link()
		} else {
			locked.has("proofline account sign-in-link").lacks(`action="/console/sign-in/link"`)
			var err error
			if link, err = w.accounts.SignInLinks.Make(t.Context(), account.ServerActor(account.MainOrg), "owner@example.com"); err != nil {
				t.Fatal(err)
			}
		}
		one.post("/console/invitation", "token", link).leadsTo("/console/sign-in?done=browser-known")
		one.get("/console/sign-in?done=browser-known").has("This browser may sign in now")
		one.post("/console/sign-in", signIn...).leadsTo("/console/rooms")
		w.browser("192.0.2.98").post("/console/invitation", "token", link).want(http.StatusGone)
		w.browser("192.0.2.97").post("/console/sign-in", signIn...).want(http.StatusTooManyRequests)
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

// TestTiming compares how long the quickest of some refusals take, in turn:
// without the hash of an address that nobody has it would always be a tenth. A
// busy machine may be slow for one of them now and then.
func TestTiming(t *testing.T) {
	t.Parallel()
	w := newTown(t, func(o *account.Options) { o.Cost = account.DefaultCost })
	w.setup()
	const known, unknown = "owner@example.com", "stranger@example.com"
	quickest := map[string]time.Duration{known: time.Hour, unknown: time.Hour}
	for i := range 40 {
		for _, email := range []string{known, unknown} {
			began := time.Now()
			w.browser("198.51.100.1").post("/console/sign-in", "email", email, "password", "wrong password").want(http.StatusForbidden)
			quickest[email] = min(quickest[email], time.Since(began))
		}
		w.pass(time.Hour)
		if i >= 7 && quickest[known] <= 3*quickest[unknown] {
			return
		}
	}
	t.Errorf("%v for an account that exists, %v for none", quickest[known], quickest[unknown])
}

// TestPeopleRoutes walks the routes of accounts as those who may not.
func TestPeopleRoutes(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	viewer := owner.invite("member@example.com", "viewer")
	posts := 0
	for _, r := range w.accountsRoutes() {
		path, name := Path+strings.ReplaceAll(r.path, ":id", uuid.NewString()), r.method+" "+r.path
		if r.scope != Public {
			if a := w.browser("192.0.2.8").do(r.method, path, ""); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/console/sign-in?next=") {
				t.Errorf("%s by nobody: %d", name, a.status)
			}
		}
		if r.scope == account.Admin {
			if a := viewer.do(r.method, path, ""); a.status != http.StatusForbidden {
				t.Errorf("%s by a viewer: %d", name, a.status)
			}
		}
		if r.method != POST {
			continue
		}
		posts++
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example"} {
			if a := owner.do(POST, path, "", header); a.status != http.StatusForbidden {
				t.Errorf("%s with %s: %d", name, header, a.status)
			}
		}
	}
	if posts < 20 {
		t.Errorf("%d routes that change something", posts)
	}
	owner.get("/console/account").want(http.StatusOK)
}

// TestSudo does what is sensitive long after the sign-in.
func TestSudo(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	w.pass(account.ConfirmedLife)
	asked := 0
	for _, r := range w.accountsRoutes() {
		if r.method != POST || r.scope != account.Admin {
			continue
		}
		asked++
		a := owner.do(POST, Path+strings.ReplaceAll(r.path, ":id", uuid.NewString()), "", "Referer: https://example.com/console/tokens")
		a.leadsTo("/console/confirm?next=%2Fconsole%2Ftokens")
	}
	if asked < 10 {
		t.Errorf("%d sensitive routes", asked)
	}
	for _, path := range []string{"/account/second-factor", "/account/second-factor/remove", "/account/recovery-codes"} {
		owner.post(Path + path).leadsTo("/console/confirm?next=%2Fconsole")
	}
	for _, path := range []string{"/organization", "/tokens", "/account/second-factor"} {
		owner.get(Path + path).want(http.StatusOK).has("Confirm that it is you")
	}
	owner.get("/console/confirm?next=/console/tokens").want(http.StatusOK).has(`value="/console/tokens"`)
	owner.post("/console/confirm", "password", goodPassword, "next", "/console/tokens").leadsTo("/console/tokens")
	owner.get("/console/tokens").want(http.StatusOK).has("Make the token").lacks("Confirm that it is you", "no value")
}

func TestFactorPages(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	v.get("/console/account/second-factor").want(http.StatusOK).has("Set it up")
	v.post("/console/account/second-factor").leadsTo("/console/account/second-factor")
	page := v.get("/console/account/second-factor").want(http.StatusOK).has("<svg class=\"qr\"", "otpauth://totp/").lacks("data:", "ZgotmplZ", "no value")
	secret := strings.ReplaceAll(regexp.MustCompile(`id="secret">([A-Z2-7 ]+)<`).FindStringSubmatch(page.body)[1], " ", "")
	code := func() string {
		c, err := totp.GenerateCode(secret, w.clock())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	v.post("/console/account/second-factor/confirm", "code", "000000").want(http.StatusBadRequest).has("<svg", "is not what the app shows now")
	before := v.token()
	page = v.post("/console/account/second-factor/confirm", "code", code()).want(http.StatusOK)
	codes := regexp.MustCompile(`<li>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</li>`).FindAllStringSubmatch(page.body, -1)
	if len(codes) != account.RecoveryCodes || v.token() == before {
		t.Fatalf("%d recovery codes, token rotated: %t", len(codes), v.token() != before)
	}
	w.pass(time.Minute)
	signIn := func() *visit {
		other := w.browser("192.0.2.6")
		other.post("/console/sign-in", "email", "owner@example.com", "password", goodPassword, "next", "/console/tokens").leadsTo("/console/sign-in/code?next=%2Fconsole%2Ftokens")
		if other.token() != "" {
			t.Fatal("signed in without a code")
		}
		other.get("/console/sign-in/code?next=/console/tokens").want(http.StatusOK).has("one-time-code")
		return other
	}
	used := code()
	one := signIn()
	one.post("/console/sign-in/code", "code", used, "next", "/console/tokens").leadsTo("/console/tokens")
	one.get("/console/tokens").want(http.StatusOK)
	two := signIn()
	two.post("/console/sign-in/code", "code", used).want(http.StatusForbidden)
	two.post("/console/sign-in/code", "code", codes[0][1]).leadsTo("/console")
	three := signIn()
	three.post("/console/sign-in/code", "code", codes[0][1]).want(http.StatusForbidden)
	three.get("/console/account").leadsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.get("/console/account/second-factor").want(http.StatusOK).has("<strong>9</strong>")
	v.post("/console/account/recovery-codes").want(http.StatusOK).has("Make new recovery codes?").lacks("id=\"codes\"")
	v.post("/console/account/recovery-codes", "confirmed", "1").want(http.StatusOK).lacks(codes[5][1])
	w.pass(time.Minute)
	v.post("/console/account/second-factor/remove", "password", "wrong", "code", code()).want(http.StatusForbidden)
	v.post("/console/account/second-factor/remove", "password", goodPassword, "code", code()).leadsTo("/console/account/second-factor?done=factor-removed")
	w.pass(account.PendingLife)
	three.post("/console/sign-in/code", "code", code()).leadsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
}

func TestMustEnrol(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	owner.post("/console/organization", "name", "Halls", "require_second_factor", "1").want(http.StatusBadRequest).has("set it up in your account")
	viewer := owner.invite("member@example.com", "viewer")
	if _, err := w.accounts.Organizations.Change(t.Context(), account.ServerActor(account.MainOrg), account.OrganizationChange{RequireFactor: new(true)}); err != nil {
		t.Fatal(err)
	}
	viewer.get("/console/organization").leadsTo("/console/account/second-factor?done=must-enrol")
	viewer.get("/console/account/second-factor?done=must-enrol").want(http.StatusOK).has("requires a second factor")
	viewer.get("/console/account").want(http.StatusOK)
}

// TestOrganizationLogo takes an image, shows it, and takes it away; a form of
// another organization's page does nothing.
func TestOrganizationLogo(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.create(owner, room.Config{Slug: "sale"})
	owner := w.setup()
	operator := owner.invite("member@example.com", "operator")
	const path = "/console/organization"
	send := func(v *visit, image string, pairs ...string) answer {
		t.Helper()
		body, kind := multipartOf(t, []file{{"logo_file", image}}, pairs...)
		return v.do(POST, path+"/logo", body, "Content-Type: "+kind)
	}
	dot := dotOf(t, 3)
	operator.get(path).want(http.StatusOK).lacks("logo_file")
	send(operator, dot).want(http.StatusForbidden)
	send(owner, dot, "in_organization", "other").want(http.StatusConflict)
	send(owner, "no image").want(http.StatusBadRequest).has("The image", `id="e-logo"`)
	send(owner, "").want(http.StatusBadRequest).has("Choose an image first.")
	owner.get(path + "/logo").want(http.StatusNotFound)
	send(owner, dot, "in_organization", "main").leadsTo(path + "?done=organization-changed")
	owner.get(path).want(http.StatusOK).has(`alt="The logo of Halls"`, "Take it away")
	if a := owner.get(path + "/logo").want(http.StatusOK); a.body != dot || a.header.Get("Content-Type") != "image/png" {
		t.Errorf("the logo is %q, %s", a.body, a.header.Get("Content-Type"))
	}
	operator.get("/console/rooms/sale/brand").want(http.StatusOK).has("the room shows that of")
	operator.get("/console/rooms/sale/preview/frame").want(http.StatusOK).has(`<img src="data:image/png;base64,`)
	send(owner, "", "logo_remove", "1").leadsTo(path + "?done=organization-changed")
	owner.get(path).want(http.StatusOK).lacks("Take it away")
	operator.get("/console/rooms/sale/brand").want(http.StatusOK).lacks("the room shows that of")
	operator.get("/console/rooms/sale/preview/frame").want(http.StatusOK).lacks("<img")
}

func TestMembersPage(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	member := owner.invite("member@example.com", "operator")
	page := owner.get("/console/organization").want(http.StatusOK).has("member@example.com", "Invite", "Custom hosts").lacks("no value", "ZgotmplZ")
	id := regexp.MustCompile(`members/([0-9a-f-]{36})/remove`).FindStringSubmatch(page.body)[1]
	member.get("/console/organization").want(http.StatusOK).has("owner@example.com").lacks("Invite", "/remove")
	self := regexp.MustCompile(`members/([0-9a-f-]{36})/role`).FindStringSubmatch(page.body)[1]
	owner.post("/console/organization/members/"+self+"/role", "role", "viewer").want(http.StatusConflict).has("at least one owner")
	owner.post("/console/organization/leave", "confirmed", "1").want(http.StatusConflict).has("at least one owner")
	owner.post("/console/organization/members/"+id+"/role", "role", "viewer").leadsTo("/console/organization?done=role-changed")
	owner.post("/console/organization/members/"+id+"/role", "role", "king").want(http.StatusBadRequest)
	owner.post("/console/organization/members/" + id + "/remove").want(http.StatusOK).has("data-question")
	owner.post("/console/organization/members/"+id+"/remove", "confirmed", "1").leadsTo("/console/organization?done=member-removed")
	member.get("/console/organization").leadsTo("/console/account?done=no-organization")
	member.get("/console/account").want(http.StatusOK).lacks("Leave")

	page = owner.post("/console/organization/invitations", "email", "viewer@example.com", "role", "viewer").want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=\S{43}`).FindString(page.body)
	page = owner.get("/console/organization").has("viewer@example.com").lacks(link)
	invited := regexp.MustCompile(`invitations/([0-9a-f-]{36})/remove`).FindStringSubmatch(page.body)[1]
	owner.post("/console/organization/invitations/" + invited + "/remove").leadsTo("/console/organization?done=uninvited")
	w.browser("192.0.2.7").post("/console/invitation", "token", link).want(http.StatusGone)
	owner.post("/console/organization/invitations", "email", "nobody", "role", "viewer").want(http.StatusBadRequest).has(`value="nobody"`, `id="e-email"`)
}

// TestJoinPages lets somebody with an account join another organization.
func TestJoinPages(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	owner := w.setup()
	other := w.tenant("other")
	page := owner.post("/console/organization/invitations", "email", "owner@other.example", "role", "viewer").want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=\S{43}`).FindString(page.body)
	guest := w.browser("192.0.2.7")
	guest.post("/console/invitation", "token", link).leadsTo("/console/invitation/accept")
	guest.get("/console/invitation/accept").want(http.StatusOK).has("has an account").lacks("new-password")
	guest.post("/console/invitation/accept", "name", "X", "password", goodPassword).want(http.StatusConflict)
	guest.post("/console/invitation/join").leadsTo("/console/sign-in?next=%2Fconsole")
	owner.cookies[invitationCookie] = guest.cookies[invitationCookie]
	owner.post("/console/invitation/join").want(http.StatusConflict)
	other.cookies[invitationCookie] = guest.cookies[invitationCookie]
	other.get("/console/invitation/accept").want(http.StatusOK).has("Join Halls")
	other.post("/console/invitation/join").leadsTo("/console")
	other.get("/console/account").want(http.StatusOK).has("You are viewer of Halls", "Switch to Tenant other")
	other.post("/console/switch", "organization", "other").leadsTo("/console/rooms")
	other.get("/console/account").want(http.StatusOK).has("You are owner of Tenant other")
	other.post("/console/switch", "organization", "nowhere").want(http.StatusNotFound)
}

func TestTokensPage(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	v.get("/console/tokens").want(http.StatusOK).has("There is no token yet.").lacks("no value")
	v.post("/console/tokens", "name", " ", "days", "30").want(http.StatusBadRequest).has(`id="e-name"`, `id="e-scopes"`, `<option value="30" selected>`)
	v.post("/console/tokens", "name", "ci", "scope", "root").want(http.StatusBadRequest)
	page := v.post("/console/tokens", "name", "shop <b>", "scope", "read", "scope", "pull", "days", "30").want(http.StatusOK).has("shop &lt;b&gt;")
	text := regexp.MustCompile(`plt_[A-Za-z0-9_-]{43}`).FindString(page.body)
	actor, err := w.accounts.Tokens.Authenticate(t.Context(), text)
	if err != nil || actor.Scopes != account.Read|account.Pull || actor.Org != account.MainOrg {
		t.Fatalf("%+v, %v", actor, err)
	}
	page = v.get("/console/tokens").has("read pull").lacks(text)
	id := regexp.MustCompile(`/tokens/([0-9a-f-]{36})/revoke`).FindStringSubmatch(page.body)[1]
	stranger := w.tenant("other")
	stranger.get("/console/tokens").want(http.StatusOK).lacks("shop &lt;")
	stranger.post("/console/tokens/"+id+"/revoke", "confirmed", "1").want(http.StatusNotFound)
	v.post("/console/tokens/" + id + "/revoke").want(http.StatusOK).has("data-question")
	v.post("/console/tokens/"+id+"/revoke", "confirmed", "1").leadsTo("/console/tokens?done=token-revoked")
	if _, err := w.accounts.Tokens.Authenticate(t.Context(), text); !errors.Is(err, account.ErrToken) {
		t.Errorf("revoked: %v", err)
	}
}

// zone is a DNS.
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
	w := newTown(t, func(o *account.Options) { o.Resolver = dns })
	v := w.setup()
	v.post("/console/organization/hosts", "host", "192.0.2.1").want(http.StatusBadRequest).has(`id="e-host"`)
	v.post("/console/organization/hosts", "host", "Queue.Halls.example").leadsTo("/console/organization?done=host-added")
	page := v.get("/console/organization").want(http.StatusOK).has("_proofline.queue.halls.example", "not verified")
	v.post("/console/organization/hosts/verify", "claimed", "queue.halls.example").want(http.StatusConflict).has("TXT record is not in the DNS yet")
	dns["_proofline.queue.halls.example."] = regexp.MustCompile(`proofline-[a-z2-7]{32}`).FindAllString(page.body, 1)
	stranger := w.tenant("other")
	stranger.post("/console/organization/hosts/verify", "claimed", "queue.halls.example").want(http.StatusNotFound)
	stranger.post("/console/organization/hosts/remove", "claimed", "queue.halls.example", "confirmed", "1").want(http.StatusNotFound)
	stranger.get("/console/organization").want(http.StatusOK).lacks("queue.halls.example", "owner@example.com")
	v.post("/console/organization/hosts/verify", "claimed", "queue.halls.example").leadsTo("/console/organization?done=host-verified")
	v.get("/console/organization").want(http.StatusOK).has(`<span class="badge good">verified</span>`).lacks("_proofline.")
	v.post("/console/organization/hosts/remove", "claimed", "queue.halls.example", "confirmed", "1").leadsTo("/console/organization?done=host-removed")
}

func TestAccountPage(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	other := w.browser("192.0.2.6")
	other.post("/console/sign-in", "email", "owner@example.com", "password", goodPassword, "next", "https://evil.example").leadsTo("/console")
	page := v.get("/console/account").want(http.StatusOK).lacks("no value")
	id := regexp.MustCompile(`sessions/([0-9a-f-]{36})/end`).FindStringSubmatch(page.body)[1]
	stranger := w.tenant("other")
	stranger.post("/console/account/sessions/" + id + "/end").leadsTo("/console/account?done=session-ended")
	other.get("/console/account").want(http.StatusOK)
	v.post("/console/account/sessions/" + id + "/end").leadsTo("/console/account?done=session-ended")
	other.get("/console/account").leadsTo("/console/sign-in?next=%2Fconsole%2Faccount")
	v.post("/console/account/name", "name", "").want(http.StatusBadRequest).has(`id="e-name"`)
	v.post("/console/account/name", "name", "Box Office").leadsTo("/console/account?done=name-changed")
	v.post("/console/account/password", "current", "wrong", "password", "a new one for today").want(http.StatusForbidden).has(`id="e-current"`)
	v.post("/console/account/password", "current", goodPassword, "password", "owner").want(http.StatusBadRequest).has(`id="e-password"`)
	before := v.token()
	v.post("/console/account/password", "current", goodPassword, "password", "a new one for today").leadsTo("/console/account?done=password-changed")
	if v.token() == before {
		t.Error("the token is the one from before")
	}
	v.get("/console/account").want(http.StatusOK).has("Box Office")
	v.post("/console/account/sessions/end-others").leadsTo("/console/account?done=sessions-ended")
}

// TestOIDCPages signs in through an issuer, confirms through it, and comes back
// in another browser.
func TestOIDCPages(t *testing.T) {
	t.Parallel()
	issuer := oidctest.Start(t)
	w := newTown(t, func(o *account.Options) {
		o.OIDC = &account.OIDCConfig{Issuer: issuer.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Name: "Keys & Co"}
	})
	owner := w.setup()
	claims := map[string]any{"sub": "1", "email": "owner@example.com", "email_verified": true}
	v := w.browser("192.0.2.6")
	v.get("/console/sign-in?next=/console/tokens").want(http.StatusOK).has("Sign in with Keys &amp; Co", `href="/console/oidc/start?next=%2fconsole%2ftokens"`)
	start := v.get("/console/oidc/start?next=/console/tokens").want(http.StatusSeeOther)
	back := "/console/oidc/callback?" + issuer.Authorize(start.header.Get("Location"), claims).Encode()
	w.browser("192.0.2.7").get(back).leadsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
	planted := owner.token()
	v.cookies[SessionCookie] = planted
	v.get(back).leadsTo("/console/account?done=password-removed")
	v.get("/console/account?done=password-removed").want(http.StatusOK).has("Your password is removed")
	if v.token() == planted {
		t.Error("the session has a token from before")
	}
	v.get("/console/tokens").want(http.StatusOK)
	v.get(back).leadsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")

	w.pass(account.ConfirmedLife)
	v.get("/console/confirm?next=/console/tokens").want(http.StatusOK).has("Confirm with Keys &amp; Co")
	start = v.get("/console/oidc/start?confirm=1&next=/console/tokens").want(http.StatusSeeOther)
	claims["auth_time"] = w.clock().Unix()
	before := v.token()
	v.get("/console/oidc/callback?" + issuer.Authorize(start.header.Get("Location"), claims).Encode()).leadsTo("/console/tokens")
	if v.token() == before {
		t.Error("the confirmed session has the token from before")
	}
	v.get("/console/tokens").want(http.StatusOK).has("Make the token")

	stranger := w.browser("192.0.2.8")
	start = stranger.get("/console/oidc/start?next=https://evil.example").want(http.StatusSeeOther)
	query := issuer.Authorize(start.header.Get("Location"), map[string]any{"sub": "2", "email": "stranger@example.com", "email_verified": true})
	stranger.get("/console/oidc/callback?" + query.Encode()).want(http.StatusForbidden).has("ask an owner")
	w.browser("192.0.2.9").get("/console/oidc/start?confirm=1").leadsTo("/console/sign-in?next=%2Fconsole%2Foidc%2Fstart%3Fconfirm%3D1")
}

func TestWithoutOIDC(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	v.get("/console/oidc/start").want(http.StatusNotFound)
	v.get("/console/oidc/callback?code=1&state=2").leadsTo("/console/sign-in?done=sign-in-late&next=%2Fconsole")
	v.get("/console/account").want(http.StatusOK)
}

func TestSafeNext(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[string]string{
		"": "/console", "/console": "/console", "/console/rooms?a=b": "/console/rooms?a=b",
		"//evil.example": "/console", "https://evil.example/console": "/console", "/console\\evil": "/console", "/consolex": "/console",
		"/other": "/console", "javascript:alert(1)": "/console",
	} {
		if got := safeNext(wanted); got != want {
			t.Errorf("%q leads to %q, want %q", wanted, got, want)
		}
	}
}

func TestInsecure(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://queue.example.com": false, "http://queue.example.com": true, "http://192.0.2.1:8080": true,
		"http://localhost:8080": false, "http://127.0.0.1:8080": false, "http://[::1]:8080": false, "": false,
	} {
		if got := isInsecure(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
