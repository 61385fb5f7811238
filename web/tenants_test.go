package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/console/rehearse"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/testlog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/setting"
)

// tenants is a site with all objects of organizers, in the organizations main and other.
type tenants struct {
	*site
	accounts    *account.Accounts
	webhooks    *webhook.Service // which send nothing, because they are not running
	sites       *sites.Sites
	names       *names
	clock       *movable
	main, other account.Actor // the server's token, in each organization
}

// names is a DNS with the TXT records of the test.
type names struct {
	mu      sync.Mutex
	records map[string]string
}

func (n *names) LookupTXT(_ context.Context, name string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if value, ok := n.records[strings.TrimSuffix(name, ".")]; ok {
		return []string{value}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (n *names) set(name, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records[name] = value
}

// movable is a clock that tests set ahead.
type movable struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (m *movable) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.ahead)
}

func (m *movable) move(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += by
}

// run runs a function until the end of the test.
func run(t testing.TB, what func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); what(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped })
}

// ownIssuer stands for the server's own issuer.
type ownIssuer struct{}

const ownKey = "5866666666666666666666666666666666666666666666666666666666666666"

func (ownIssuer) Key(string, credential.Method) (string, error) { return ownKey, nil }
func (ownIssuer) Page(slug, method string) string {
	return "https://example.com/issuer/" + slug + "." + method
}
func (ownIssuer) Lacks(string) string { return "" }
func (ownIssuer) Proof(string, credential.Method) (setting.Proof, string) {
	return setting.ProofCode, ""
}
func (ownIssuer) OwnKey(_ string, m credential.Method) string {
	return map[string]string{ownKey: setting.OwnKey}[m.Key]
}
func (ownIssuer) AddCodes(_, _ string, count int) ([]string, int, error) {
	return make([]string, count), count, nil
}
func (ownIssuer) Codes(context.Context, string, string) ([]control.CodeBatch, error) {
	return []control.CodeBatch{{Made: time.UnixMilli(1_700_000_000_000), Unused: 3, Used: 2, Void: 1}}, nil
}
func (ownIssuer) VoidCodes(_ context.Context, _, _ string, which control.CodesToVoid, _ bool) (control.VoidedCodes, error) {
	if which.Batch > 1 {
		return control.VoidedCodes{}, control.ErrNoBatch
	}
	return control.VoidedCodes{Voided: len(which.Codes)}, nil
}
func (ownIssuer) SetMembers(_, _ string, _ []string, rows [][]string, _ bool) (control.Members, error) {
	return control.Members{Count: len(rows)}, nil
}

func newTenants(t testing.TB) *tenants {
	t.Helper()
	rooms, pool := newRooms(t)
	rooms.Issuer = ownIssuer{}
	log := testlog.New(t, slog.LevelWarn)
	out := &tenants{names: &names{records: map[string]string{}}, clock: &movable{}}
	rehearsals := rehearse.New(rooms, nil, log)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := rehearsals.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	record := activity.New(activity.Options{
		Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
	})
	counter := control.New(control.Options{Rooms: rooms, Issuer: ownIssuer{}, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), Activity: record, Rehearsals: rehearsals, Log: log, OwnsHost: func(ctx context.Context, org uuid.UUID, host string) (bool, error) {
		owner, ok, err := out.accounts.Hosts.Owner(ctx, host)
		return ok && owner == org, err
	}, OrganizerName: func(ctx context.Context, org uuid.UUID) string {
		return out.accounts.Organizations.PublicName(ctx, org)
	}})
	out.accounts = account.New(account.Options{
		Store: pgaccount.NewStore(pool), Sealer: rooms.MasterKey, Activity: record, URL: publicURL,
		Host: "example.com", Resolver: out.names, Now: out.clock.now, Log: log,
		Cost: account.Cost{Memory: 8, Passes: 1, Threads: 1},
	})
	figures := live.New(live.Options{
		Rooms: rooms, Store: pglive.NewStore(pool), Records: pgroom.NewStore(pool), Name: "node", Version: "test",
		Log: log,
	})
	run(t, figures.Run)
	out.webhooks = webhook.New(webhook.Options{
		Store: pgwebhook.NewStore(pool), Rooms: rooms, Sealer: rooms.MasterKey, Activity: record, Log: log,
	})
	out.sites = sites.New(sites.Options{
		Store: pgsite.NewStore(pool), Records: pgroom.NewStore(pool), Rooms: rooms, Sealer: rooms.MasterKey,
		Activity: record, HostOwner: out.accounts.Hosts.Owner,
		Slug: func(ctx context.Context, org uuid.UUID) (string, error) {
			o, err := out.accounts.Organizations.Get(ctx, account.ServerActor(org))
			return o.Slug, err
		},
	})
	out.site = startSite(t, Options{
		Rooms: rooms, Control: counter, Accounts: out.accounts, Live: figures, Webhooks: out.webhooks, Sites: out.sites,
		AdminToken: token,
	})
	out.main = account.ServerActor(account.MainOrg)
	o, err := out.accounts.Organizations.Create(t.Context(), out.main, "other", "The others")
	if err != nil {
		t.Fatal(err)
	}
	out.other = account.ServerActor(o.ID)
	return out
}

// token creates a token of an organization.
func (s *tenants) token(in account.Actor, scopes account.Scope, life time.Duration) (text string, id uuid.UUID) {
	s.Helper()
	text, info, err := s.accounts.Tokens.Make(s.Context(), in, account.NewToken{
		Name: "a token", Scopes: scopes, Life: life,
	})
	if err != nil {
		s.Fatal(err)
	}
	return text, info.ID
}

// member adds a member to an organization.
func (s *tenants) member(in account.Actor, role account.Role) uuid.UUID {
	s.Helper()
	email := strings.ToLower(uuid.NewString()) + "@example.com"
	link, _, err := s.accounts.Invitations.Invite(s.Context(), in, email, role)
	if err != nil {
		s.Fatal(err)
	}
	_, secret, _ := strings.Cut(link, "#")
	secret = strings.TrimPrefix(secret, "t=")
	if _, err := s.accounts.Invitations.Accept(s.Context(), secret, account.NewPerson{Name: "Somebody", Email: email, Password: uuid.NewString()}, account.Client{}); err != nil {
		s.Fatal(err)
	}
	members, err := s.accounts.Members.List(s.Context(), in)
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range members {
		if m.Email == email {
			return m.Person
		}
	}
	s.Fatal(errors.New("the member is missing"))
	return uuid.Nil
}

// make creates an object for a path parameter in an organization, and returns its name.
func (s *tenants) make(what string, in account.Actor) string {
	s.Helper()
	ctx := s.Context()
	fail := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatalf("%s: %v", what, err)
		}
	}
	short := "x" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	switch what {
	case "slug":
		_, err := s.control.Create(ctx, in, room.Config{Slug: short, Beacon: "none"}, control.Place{})
		fail(err)
		return short
	case "presale":
		own := credential.Method{Name: "club", Kind: credential.Signed, Key: setting.OwnKey}
		_, err := s.control.Create(ctx, in, room.Config{Slug: short, Beacon: "none", Methods: []credential.Method{own}}, control.Place{})
		fail(err)
		return short
	case "ended":
		_, err := s.control.Create(ctx, in, room.Config{Slug: short, Beacon: "none"}, control.Place{})
		fail(err)
		_, err = s.control.End(ctx, in, short)
		fail(err)
		return short
	case "draft":
		d, err := s.control.Drafts.Save(ctx, in, uuid.Nil, 0, "", json.RawMessage(`{"slug":"`+short+`"}`))
		fail(err)
		return d.ID.String()
	case "member":
		return s.member(in, account.Viewer).String()
	case "invitation":
		_, _, err := s.accounts.Invitations.Invite(ctx, in, short+"@example.com", account.Viewer)
		fail(err)
		list, err := s.accounts.Invitations.List(ctx, in)
		fail(err)
		for _, v := range list {
			if v.Email == short+"@example.com" {
				return v.ID.String()
			}
		}
	case "token":
		_, id := s.token(in, account.Read, time.Hour)
		return id.String()
	case "host":
		h, err := s.accounts.Hosts.Add(ctx, in, short+".example.org")
		fail(err)
		s.names.set(h.Record, h.Token)
		return h.Host
	case "webhook", "delivery":
		list, err := s.webhooks.Endpoints.List(ctx, in)
		fail(err)
		for _, old := range list[:max(0, len(list)-webhook.MaxEndpoints/2)] { // their number is limited
			fail(s.webhooks.Endpoints.Delete(ctx, in, old.ID))
		}
		e, _, err := s.webhooks.Endpoints.Create(ctx, in, webhook.EndpointConfig{URL: "https://" + short + ".example.org/hook"})
		fail(err)
		if what == "webhook" {
			return e.ID.String()
		}
		d, err := s.webhooks.Endpoints.Ping(ctx, in, e.ID)
		fail(err)
		return d.ID.String()
	case "site":
		_, err := s.sites.Create(ctx, in, short, []byte(`{"version": 1}`))
		fail(err)
		return short
	case "version":
		return "1" // of the site that was created before
	case "rehearsal":
		r, err := s.control.Rehearse(ctx, in, s.make("slug", in), rehearse.Plan{Visitors: rehearse.MinVisitors})
		fail(err)
		return r.Slug
	case "organization":
		o, err := s.accounts.Organizations.Create(ctx, in, short, "Another")
		fail(err)
		return o.Slug
	}
	s.Fatalf("no test value for a %s", what)
	return ""
}

// join lets a visitor join a room, and returns the ticket.
func (s *tenants) join(slug string) string {
	s.Helper()
	r, err := s.rooms.Get(s.Context(), slug)
	if err != nil {
		s.Fatal(err)
	}
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:])
	t := fairness.NewTicket(r.Origin, secret)
	if _, err := r.Join(s.Context(), t); err != nil {
		s.Fatal(err)
	}
	return t.String()
}

// stopRehearsals stops the rehearsals of an organization.
func (s *tenants) stopRehearsals(in account.Actor) {
	s.Helper()
	list, err := s.control.ListRehearsals(in)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range list {
		if r.Over {
			continue
		}
		if err := s.control.StopRehearsal(s.Context(), in, r.Slug); err != nil {
			s.Fatal(err)
		}
	}
}

// revoke takes the place of a ticket away.
func (s *tenants) revoke(slug, ticket string) {
	s.Helper()
	r, err := s.rooms.Get(s.Context(), slug)
	if err != nil {
		s.Fatal(err)
	}
	t, err := fairness.ParseTicket(ticket)
	if err != nil {
		s.Fatal(err)
	}
	if err := r.Revoke(s.Context(), t, fairness.Revoked); err != nil {
		s.Fatal(err)
	}
}
