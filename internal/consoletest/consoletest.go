// Package consoletest runs the whole console on a separate database, for tests of its parts.
package consoletest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/console/ready"
	"github.com/proofline/proofline/console/rehearse"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/console/shell"
)

// The people of tests. The token of their session is their name.
const (
	Owner    = "owner"    // owner of the first organization
	Operator = "operator" // in the first organization
	Viewer   = "viewer"   // in the first organization
	Stranger = "stranger" // owner of another organization
	Nobody   = ""         // not signed in
)

// OtherOrg is the organization of the stranger.
var OtherOrg = uuid.MustParse("00000000-0000-8000-8000-0000000000bb")

// Identities returns the people by their session tokens. Tests may change the map.
func Identities() map[string]shell.Identity {
	person := func(name string, org uuid.UUID, role account.Role) shell.Identity {
		at := shell.Organization{Slug: "main", Name: "My organization"}
		if org == OtherOrg {
			at = shell.Organization{Slug: "other", Name: "Another organization"}
		}
		return shell.Identity{
			Actor: account.Actor{
				Kind: account.Person, ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)), Name: name + "@example.com",
				Org: org, Scopes: role.Scopes(),
			},
			Name: name, Organization: at, Organizations: []shell.Organization{at}, Confirmed: time.Now(),
		}
	}
	return map[string]shell.Identity{
		Owner:    person(Owner, account.MainOrg, account.Owner),
		Operator: person(Operator, account.MainOrg, account.Operator),
		Viewer:   person(Viewer, account.MainOrg, account.Viewer),
		Stranger: person(Stranger, OtherOrg, account.Owner),
	}
}

// Actor returns one of the people as an actor.
func Actor(who string) account.Actor { return Identities()[who].Actor }

// Site is a console that listens on loopback.
type Site struct {
	testing.TB
	*console.Console
	Control  *control.Rooms
	Live     *live.Live
	Webhooks *webhook.Service
	Sites    *sites.Sites
	URL      string
}

// New starts a console. Tests may change its options.
func New(t testing.TB, change ...func(*console.Options)) *Site {
	t.Helper()
	pool, log := servertest.Pool(t, pgtest.URL(t)), servertest.Log(t)
	d := newControl(t, pool)
	known := Identities()
	o := console.Options{
		Identify: func(_ context.Context, token string) (shell.Identity, error) {
			who, ok := known[token]
			if !ok {
				return shell.Identity{}, shell.ErrSignIn
			}
			return who, nil
		},
		Live: live.New(live.Options{
			Rooms: d.Rooms, Store: pglive.NewStore(pool), Records: pgroom.NewStore(pool), Name: "here", Version: "test",
			Log: log,
		}),
		Webhooks: newWebhooks(t, d, pool, nil), Sites: newSites(t, d, pool), Describe: Describe, Control: d,
		Activity:    d.Activity,
		CrossOrigin: http.NewCrossOriginProtection(), Version: "test", PublicURL: d.Rooms.PublicURL, Log: log,
	}
	for _, f := range change {
		f(&o)
	}
	c, err := console.New(o)
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.HTTPErrorHandler = func(err error, x echo.Context) {
		p := Describe(err)
		_ = x.String(p.Status, p.Title+": "+p.Detail)
	}
	c.Register(e)
	listener := httptest.NewServer(e)
	t.Cleanup(listener.Close)
	return &Site{t, c, o.Control, o.Live, o.Webhooks, o.Sites, listener.URL}
}

// Describe describes the errors that tests check, as the server does.
func Describe(err error) shell.Problem {
	for target, status := range map[error]int{
		room.ErrRegressed: http.StatusServiceUnavailable, room.ErrAbandoned: http.StatusGone,
		room.ErrNotFound: http.StatusNotFound, control.ErrDraftUnknown: http.StatusNotFound,
		account.ErrNotFound: http.StatusNotFound, account.ErrForbidden: http.StatusForbidden,
		room.ErrExists: http.StatusConflict, control.ErrChanged: http.StatusConflict,
		control.ErrNotEnded: http.StatusConflict, live.ErrNotEnded: http.StatusConflict,
		shell.ErrCrossOrigin: http.StatusForbidden, shell.ErrSwitched: http.StatusConflict,
		shell.ErrTooLarge: http.StatusRequestEntityTooLarge, shell.ErrSignIn: http.StatusUnauthorized,
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

// newControl runs rooms on a database. The first organization owns queue.example.org.
func newControl(t testing.TB, pool *pgxpool.Pool) *control.Rooms {
	t.Helper()
	rooms, log := servertest.Rooms(t, pool), servertest.Log(t)
	owns := func(_ context.Context, org uuid.UUID, host string) (bool, error) {
		return org == account.MainOrg && host == "queue.example.org", nil
	}
	rehearsals := rehearse.New(rooms, nil, log)
	t.Cleanup(func() {
		if err := rehearsals.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), OwnsHost: owns,
		Rehearsals: rehearsals, Log: log,
		Ready: ready.New(ready.Options{
			Rooms: rooms, Meter: meter.New(), Data: t.TempDir(), PublicURL: "http://127.0.0.1",
			Conditions: func(ctx context.Context) (pglog.Conditions, error) { return pglog.ReadConditions(ctx, pool) },
			Role:       func(ctx context.Context) error { return pglog.CheckRole(ctx, pool) },
			HasOwner:   func(context.Context) (bool, error) { return true, nil },
			Recipients: func(context.Context, account.Actor) (int, error) { return 0, nil },
		}),
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), Kept: 90 * 24 * time.Hour, IsRefusal: control.IsRefusal, Log: log,
		}),
	})
}

// WithMail gives the console a mail server, and webhooks on a separate database.
func WithMail(t testing.TB) func(*console.Options) {
	return func(o *console.Options) {
		mail := &webhook.SMTP{Host: "127.0.0.1", Port: 1}
		o.Webhooks = newWebhooks(t, o.Control, servertest.Pool(t, pgtest.URL(t)), mail)
	}
}

// newWebhooks returns the webhook service. Webhooks may call this machine, and are sent only if the test calls
// Run. Without mail the service cannot send mail.
func newWebhooks(t testing.TB, d *control.Rooms, pool *pgxpool.Pool, mail *webhook.SMTP) *webhook.Service {
	t.Helper()
	return webhook.New(webhook.Options{
		Store: pgwebhook.NewStore(pool), Rooms: d.Rooms, Sealer: servertest.MasterKey(t), Activity: d.Activity,
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Mail: mail, Log: servertest.Log(t),
	})
}

func newSites(t testing.TB, d *control.Rooms, pool *pgxpool.Pool) *sites.Sites {
	t.Helper()
	return sites.New(sites.Options{
		Store: pgsite.NewStore(pool), Records: pgroom.NewStore(pool), Rooms: d.Rooms, Sealer: servertest.MasterKey(t),
		Activity: d.Activity,
		Slug: func(_ context.Context, org uuid.UUID) (string, error) {
			return map[uuid.UUID]string{account.MainOrg: "main", OtherOrg: "other"}[org], nil
		},
	})
}

// Create publishes a room of a person's organization.
func (s *Site) Create(who string, c room.Config) *room.Room {
	s.Helper()
	r, err := s.Control.Create(s.Context(), Actor(who), c, control.Place{})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// Join adds visitors to a room.
func (s *Site) Join(r *room.Room, visitors int) {
	s.Helper()
	for range visitors {
		var secret [fairness.SecretSize]byte
		_, _ = rand.Read(secret[:])
		if _, err := r.Join(s.Context(), fairness.NewTicket(r.Origin, secret)); err != nil {
			s.Fatal(err)
		}
	}
}

// AddSite adds a site of a person's organization whose rules name a room.
func (s *Site) AddSite(who, name string, r *room.Room) sites.Site {
	s.Helper()
	document := fmt.Sprintf(`{"version": 1, "hosts": ["shop.example.com"], "rooms": {"sale": {"url": %q}}, "rules": [
  {"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}
]}`, r.URL)
	made, err := s.Sites.Create(s.Context(), Actor(who), name, []byte(document))
	if err != nil {
		s.Fatal(err)
	}
	return made
}
