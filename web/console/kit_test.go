package console

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// The people of tests. Their session's token is their name.
const (
	owner    = "owner"    // of the first organization
	operator = "operator" // in it
	viewer   = "viewer"   // in it
	stranger = "stranger" // owner of another organization
	nobody   = ""         // is not signed in
)

// otherOrg is the organization of the stranger.
var otherOrg = uuid.MustParse("00000000-0000-8000-8000-0000000000bb")

// identities are who is signed in with a token. Tests may add to a copy.
func identities() map[string]Identity {
	person := func(name string, org uuid.UUID, role account.Role) Identity {
		at := Organization{Slug: "main", Name: "My organization"}
		if org == otherOrg {
			at = Organization{Slug: "other", Name: "Another organization"}
		}
		return Identity{
			Actor: account.Actor{Kind: account.Person, ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)), Name: name + "@example.com", Org: org, Scopes: role.Scopes()},
			Name:  name, Organization: at, Organizations: []Organization{at}, Confirmed: time.Now(),
		}
	}
	return map[string]Identity{
		owner:    person(owner, account.MainOrg, account.Owner),
		operator: person(operator, account.MainOrg, account.Operator),
		viewer:   person(viewer, account.MainOrg, account.Viewer),
		stranger: person(stranger, otherOrg, account.Owner),
	}
}

// site is a console on a database of its own, reached over loopback.
type site struct {
	testing.TB
	*Console
	control *control.Rooms
	pool    *pgxpool.Pool
	url     string
}

// newConsole starts a site; options may be changed before it starts.
func newConsole(t testing.TB, change ...func(*Options)) *site {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	d := newControl(t, pool)
	known := identities()
	o := Options{
		Identify: func(_ context.Context, token string) (Identity, error) {
			who, ok := known[token]
			if !ok {
				return Identity{}, ErrSignIn
			}
			return who, nil
		},
		Live:     live.New(live.Options{Rooms: d.Rooms, Store: pglive.NewStore(pool), Name: "here", Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}),
		Webhooks: newWebhooks(t, d, pool),
		Sites:    newSites(t, d, pool),
		Describe: describe, Control: d, Activity: d.Activity, CrossOrigin: http.NewCrossOriginProtection(),
		Version: "test", PublicURL: d.Rooms.PublicURL,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.HTTPErrorHandler = func(err error, x echo.Context) {
		p := describe(err)
		_ = x.String(p.Status, p.Title+": "+p.Detail)
	}
	c.Register(e)
	listener := httptest.NewServer(e)
	t.Cleanup(listener.Close)
	return &site{t, c, d, pool, listener.URL}
}

// describe says errors as the server does, as far as tests look.
func describe(err error) shell.Problem {
	for target, status := range map[error]int{
		room.ErrRegressed: http.StatusServiceUnavailable, room.ErrAbandoned: http.StatusGone,
		room.ErrNotFound: http.StatusNotFound, control.ErrDraftUnknown: http.StatusNotFound, account.ErrForbidden: http.StatusForbidden,
		room.ErrExists: http.StatusConflict, control.ErrChanged: http.StatusConflict, control.ErrNotEnded: http.StatusConflict, live.ErrNotEnded: http.StatusConflict,
		account.ErrNotFound: http.StatusNotFound, shell.ErrCrossOrigin: http.StatusForbidden, ErrSwitched: http.StatusConflict, ErrTooLarge: http.StatusRequestEntityTooLarge, ErrSignIn: http.StatusUnauthorized,
	} {
		if errors.Is(err, target) {
			return shell.Problem{Status: status, Title: http.StatusText(status), Detail: target.Error()}
		}
	}
	if routing, ok := errors.AsType[*echo.HTTPError](err); ok {
		return shell.Problem{Status: routing.Code, Title: http.StatusText(routing.Code)}
	}
	_, malformed := errors.AsType[*invalid.Error](err)
	_, refused := errors.AsType[*fairness.Violation](err)
	switch {
	case malformed:
		return shell.Problem{Status: http.StatusBadRequest, Title: "Invalid input", Detail: err.Error()}
	case refused:
		return shell.Problem{Status: http.StatusConflict, Title: "Against the rules of the room", Detail: err.Error()}
	}
	return shell.Problem{Status: http.StatusInternalServerError, Title: "Internal error", Detail: err.Error()}
}

// newControl runs rooms on a database; the first organization owns queue.example.org.
func newControl(t testing.TB, pool *pgxpool.Pool) *control.Rooms {
	t.Helper()
	rooms, log := servertest.Rooms(t, pool), servertest.Log(t)
	owns := func(_ context.Context, org uuid.UUID, host string) (bool, error) {
		return org == account.MainOrg && host == "queue.example.org", nil
	}
	rehearsals := rehearse.New(rooms, log)
	t.Cleanup(func() {
		if err := rehearsals.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(pool), OwnsHost: owns, Rehearsals: rehearsals, Log: log,
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
		}),
	})
}

// create publishes a room of somebody's organization.
func (s *site) create(who string, c room.Config) *room.Room {
	s.Helper()
	r, err := s.control.Create(s.Context(), identities()[who].Actor, c, control.Place{})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// join lets so many people join a room.
func (s *site) join(r *room.Room, people int) {
	s.Helper()
	for range people {
		var secret [fairness.SecretSize]byte
		_, _ = rand.Read(secret[:])
		if _, err := r.Join(s.Context(), fairness.NewTicket(r.Origin, secret)); err != nil {
			s.Fatal(err)
		}
	}
}

// answer is a response that has been read.
type answer struct {
	testing.TB
	status int
	header http.Header
	body   string
}

// client follows nothing by itself, so that tests see what is sent.
var client = &http.Client{
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request as somebody; headers are "Name: value".
func (s *site) do(who, method, path, body string, headers ...string) answer {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	if who != nobody {
		q.AddCookie(&http.Cookie{Name: SessionCookie, Value: who})
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	response, err := client.Do(q)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{s.TB, response.StatusCode, response.Header, string(b)}
}

func (s *site) get(who, path string, headers ...string) answer {
	s.Helper()
	return s.do(who, GET, path, "", headers...)
}

// post sends a form, of names and values in turn.
func (s *site) post(who, path string, pairs ...string) answer {
	s.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return s.do(who, POST, path, form.Encode())
}

// want ends the test unless the answer has that status.
func (a answer) want(status int) answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// has complains about texts that the page does not have.
func (a answer) has(texts ...string) answer {
	a.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			a.Errorf("no %q in the page:\n%s", text, a.body)
		}
	}
	return a
}

// lacks complains about texts that the page has.
func (a answer) lacks(texts ...string) answer {
	a.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			a.Errorf("%q is in the page:\n%s", text, a.body)
		}
	}
	return a
}

// leadsTo ends the test unless the answer redirects there.
func (a answer) leadsTo(path string) answer {
	a.Helper()
	if a.want(http.StatusSeeOther); a.header.Get("Location") != path {
		a.Fatalf("leads to %s, want %s", a.header.Get("Location"), path)
	}
	return a
}

// Names of the shell that tests look at.
const (
	knownCookie       = "__Host-proofline.known"
	organizationField = "in_organization"
)

var bytesize = format.Bytes
