package consoletest

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/console/shell"
)

// GoodPassword is the password of the people of a [Town].
const GoodPassword = "correct battery horse"

// Town is a console with real accounts and a clock that the test moves.
type Town struct {
	*Site
	Accounts *account.Accounts

	mu  sync.Mutex
	now time.Time
}

// NewTown starts a console with real accounts. Tests may change the options of the accounts.
func NewTown(t testing.TB, change ...func(*account.Options)) *Town {
	t.Helper()
	w := &Town{now: time.Now()}
	w.Accounts = Accounts(t, append([]func(*account.Options){
		func(o *account.Options) { o.Now = w.Clock },
	}, change...)...)
	w.Site = New(t, func(o *console.Options) {
		o.Accounts, o.Identify, o.Now = w.Accounts, nil, w.Clock
		o.Describe = func(err error) shell.Problem {
			if errors.Is(err, account.ErrNotFound) {
				return shell.Problem{Status: http.StatusNotFound, Title: "Not found"}
			}
			return Describe(err)
		}
	})
	return w
}

// Accounts returns accounts on a separate database. Tests may change their options.
func Accounts(t testing.TB, change ...func(*account.Options)) *account.Accounts {
	t.Helper()
	o := account.Options{
		Store: pgaccount.NewStore(servertest.Pool(t, pgtest.URL(t))), Sealer: servertest.MasterKey(t),
		URL: "https://example.com", Host: "example.com", Cost: account.Cost{Memory: 64, Passes: 1, Threads: 1},
	}
	for _, f := range change {
		f(&o)
	}
	accounts := account.New(o)
	t.Cleanup(accounts.Close)
	return accounts
}

// Clock returns the time.
func (w *Town) Clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Pass moves the clock forward.
func (w *Town) Pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Visit is a browser with cookies.
type Visit struct {
	*Town
	Cookies map[string]string
	Set     []*http.Cookie // cookies set by the latest answer
	addr    string
}

// Browser returns a browser without cookies, at an address.
func (w *Town) Browser(addr string) *Visit {
	return &Visit{Town: w, addr: addr, Cookies: map[string]string{}}
}

// Do sends a request with the cookies, and keeps those of the answer.
func (v *Visit) Do(method, path, body string, headers ...string) Answer {
	v.Helper()
	var list []string
	for name, value := range v.Cookies {
		list = append(list, name+"="+value)
	}
	headers = append(headers, "X-Forwarded-For: "+v.addr)
	if len(list) > 0 {
		headers = append(headers, "Cookie: "+strings.Join(list, "; "))
	}
	a := v.Site.Do(Nobody, method, path, body, headers...)
	v.Set = (&http.Response{Header: a.Header}).Cookies()
	for _, c := range v.Set {
		if v.Cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.Cookies, c.Name)
		}
	}
	return a
}

// Get requests a page.
func (v *Visit) Get(path string) Answer {
	v.Helper()
	return v.Do(http.MethodGet, path, "")
}

// Post sends a form. The fields are names and values in turn.
func (v *Visit) Post(path string, fields ...string) Answer {
	v.Helper()
	return v.Do(http.MethodPost, path, Form(fields...))
}

// Session returns the token of the session.
func (v *Visit) Session() string { return v.Cookies[shell.SessionCookie] }

// Setup creates the first owner and returns their browser.
func (w *Town) Setup() *Visit {
	w.Helper()
	link, err := w.Accounts.Invitations.SetupLink(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	v := w.Browser("192.0.2.1")
	v.Post("/console/invitation", "token", link).RedirectsTo("/console/invitation/accept")
	v.Get("/console/invitation/accept").Want(http.StatusOK).Has("Name of your organization")
	v.Post("/console/invitation/accept", "organization", "Halls", "email", "owner@example.com", "name", "Owner",
		"password", GoodPassword).RedirectsTo("/console")
	return v
}

// Invite adds a member through the pages, and returns their browser.
func (v *Visit) Invite(email, role string) *Visit {
	v.Helper()
	page := v.Post("/console/organization/invitations", "email", email, "role", role).Want(http.StatusOK)
	link := regexp.MustCompile(`https://example\.com/console/invitation#t=[A-Za-z0-9_-]{43}`).FindString(page.Body)
	other := v.Browser("192.0.2.2")
	other.Post("/console/invitation", "token", link).RedirectsTo("/console/invitation/accept")
	other.Post("/console/invitation/accept", "name", "Somebody", "password", GoodPassword).RedirectsTo("/console")
	return other
}

// Tenant adds an organization and returns the browser of its owner.
func (w *Town) Tenant(slug string) *Visit {
	w.Helper()
	server := account.ServerActor(account.MainOrg)
	if _, err := w.Accounts.Organizations.Create(w.Context(), server, slug, "Tenant "+slug); err != nil {
		w.Fatal(err)
	}
	link, err := w.Accounts.Invitations.OwnerLink(w.Context(), server, slug, "")
	if err != nil {
		w.Fatal(err)
	}
	v := w.Browser("192.0.2.3")
	v.Post("/console/invitation", "token", link).RedirectsTo("/console/invitation/accept")
	v.Post("/console/invitation/accept", "email", "owner@"+slug+".example", "name", "Owner",
		"password", GoodPassword).RedirectsTo("/console")
	return v
}
