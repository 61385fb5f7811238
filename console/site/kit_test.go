package site_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var (
	owner = account.Actor{
		Kind: account.Person, Name: "owner@example.com", Org: account.MainOrg, Scopes: account.Owner.Scopes(),
	}
	viewer = account.Actor{
		Kind: account.Person, Name: "viewer@example.com", Org: account.MainOrg, Scopes: account.Viewer.Scopes(),
	}
	connector = account.Actor{Kind: account.Token, Name: "shop", Org: account.MainOrg, Scopes: account.Connect}
	another   = account.Actor{
		Kind: account.Person, Name: "owner@example.org", Org: uuid.MustParse("00000000-0000-8000-8000-0000000000bb"),
		Scopes: account.Owner.Scopes(),
	}
	stranger = account.Actor{
		Kind: account.Person, Name: "owner@example.net", Org: uuid.MustParse("00000000-0000-8000-8000-0000000000cc"),
		Scopes: account.Owner.Scopes(),
	}
)

// tickets is a custom host of the first organization.
const tickets = "tickets.example.com"

// server bundles a server's sites with their dependencies.
type server struct {
	testing.TB
	*site.Sites
	control *control.Rooms
	pool    *pgxpool.Pool
	key     *keys.MasterKey
}

func newServer(t testing.TB) *server {
	t.Helper()
	pool, key := servertest.Pool(t, pgtest.URL(t)), servertest.MasterKey(t)
	rooms := servertest.Rooms(t, pool, func(o *room.Options) { o.PublicURL, o.MasterKey = "https://queue.example.com", key })
	owns := func(_ context.Context, org uuid.UUID, host string) (bool, error) {
		return org == owner.Org && host == tickets, nil
	}
	log := servertest.Log(t)
	d := control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), OwnsHost: owns, Log: log,
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
		}),
	})
	s := &server{t, nil, d, pool, key}
	s.Sites = s.again()
	return s
}

// again returns the sites as seen by another node of the server.
func (s *server) again() *site.Sites {
	return site.New(site.Options{
		Store: pgsite.NewStore(s.pool), Records: pgroom.NewStore(s.pool), Rooms: s.control.Rooms, Sealer: s.key,
		Activity: s.control.Activity,
		Slug: func(_ context.Context, org uuid.UUID) (string, error) {
			return map[uuid.UUID]string{owner.Org: "main", another.Org: "another"}[org], nil
		},
		HostOwner: func(_ context.Context, host string) (uuid.UUID, bool, error) {
			return owner.Org, host == tickets, nil
		},
	})
}

// room creates a room with the given targets.
func (s *server) room(by account.Actor, slug, host string, targets ...string) {
	s.Helper()
	_, err := s.control.Create(s.Context(), by, room.Config{Slug: slug, Beacon: "none", Settings: room.Settings{Targets: targets}}, control.Place{Host: host})
	if err != nil {
		s.Fatal(err)
	}
}

// create creates a site.
func (s *server) create(by account.Actor, name, document string) site.Site {
	s.Helper()
	made, err := s.Create(s.Context(), by, name, []byte(document))
	if err != nil {
		s.Fatal(err)
	}
	return made
}

// verbs returns the verbs and outcomes of a site's activity log, latest first.
func (s *server) verbs(by account.Actor, name string) []string {
	s.Helper()
	page, err := s.control.Activity.Entries(s.Context(), by, "site/"+name, uuid.Nil, 0)
	if err != nil {
		s.Fatal(err)
	}
	var list []string
	for _, a := range page.Entries {
		list = append(list, a.Verb+" "+string(a.Outcome))
	}
	return list
}

// want compares lists of strings.
func want(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", what, got, want)
	}
}

// refused fails the test unless the error reports this detail for this field.
func refused(t testing.TB, err error, field, detail string) {
	t.Helper()
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		t.Fatalf("error %v, want %s: %s", err, field, detail)
	}
	for _, p := range wrong.Problems {
		if p.Field == field && strings.Contains(p.Detail, detail) {
			return
		}
	}
	t.Errorf("error %v, want %s: %s", err, field, detail)
}

// rulesFor returns rules that queue for the room at url.
func rulesFor(url string) string {
	return `{
  "version": 1,
  "hosts": ["shop.example.com"],
  "rooms": {"sale": {"url": "` + url + `"}},
  "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]
}
`
}

const (
	saleURL = "https://queue.example.com/r/sale"
	open    = `{"version": 1, "hosts": ["shop.example.com"], "rules": []}`
)
