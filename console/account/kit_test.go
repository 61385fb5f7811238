package account_test

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const password = "correct battery horse" // unlike the well-known "correct horse battery staple"

// browser is the client that people in tests sign in from.
var browser = account.Client{Addr: netip.MustParseAddr("192.0.2.7"),
	UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0"}

// kit holds the accounts of one test, with a clock that the test advances.
type kit struct {
	*account.Accounts
	options account.Options
	t       *testing.T
	pool    *pgxpool.Pool
	log     *activityLog
	mail    *mailbox

	mu  sync.Mutex
	now time.Time
}

// activityLog records activity log entries in memory.
type activityLog struct {
	mu   sync.Mutex
	list []entry
}

type entry struct {
	by           account.Actor
	verb, object string
	detail       map[string]any
}

func (l *activityLog) Record(_ context.Context, by account.Actor, verb, object string, detail map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, entry{by, verb, object, detail})
	return nil
}

// verbs returns the verbs recorded in an organization.
func (l *activityLog) verbs(org account.Organization) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, v := range l.list {
		if v.by.Org == org.ID {
			list = append(list, v.verb)
		}
	}
	return list
}

// mailbox records mails.
type mailbox struct {
	mu   sync.Mutex
	sent []string // address, space, text
	fail error
}

func (m *mailbox) Send(_ context.Context, to, _, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, to+" "+text)
	return m.fail
}

// newKit returns accounts on an empty database, with options modified by with.
func newKit(t *testing.T, with ...func(*account.Options)) *kit {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	master := servertest.MasterKey(t)
	k := &kit{t: t, pool: pool, log: &activityLog{}, mail: &mailbox{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o := account.Options{
		Store: pgaccount.NewStore(pool), Sealer: master, Activity: k.log, URL: "https://queue.example.com",
		Host: "queue.example.com:443",
		Now:  k.clock, Cost: account.Cost{Memory: 64, Passes: 1, Threads: 1},
	}
	for _, change := range with {
		change(&o)
	}
	k.options, k.Accounts = o, account.New(o)
	t.Cleanup(k.Close)
	return k
}

func (k *kit) clock() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// pass advances the clock.
func (k *kit) pass(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.Add(d)
}

// tokenOf returns the token in the fragment of a link.
func (k *kit) tokenOf(link string) string {
	k.t.Helper()
	u, err := url.Parse(link)
	token, ok := strings.CutPrefix(u.Fragment, "t=")
	if err != nil || !ok || u.RawQuery != "" {
		k.t.Fatalf("link %q: %v", link, err)
	}
	return token
}

// session returns the session of a token.
func (k *kit) session(token string) account.Session {
	k.t.Helper()
	s, err := k.Sessions.Get(k.t.Context(), token)
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

// owner sets up the server and returns the first owner's session and its token.
func (k *kit) owner() (account.Session, string) {
	k.t.Helper()
	link, err := k.Invitations.SetupLink(k.t.Context())
	if err != nil || link == "" {
		k.t.Fatalf("setup link %q, %v", link, err)
	}
	in, err := k.Invitations.Accept(k.t.Context(), k.tokenOf(link),
		account.NewPerson{OrgName: "Halls", Email: "Owner@Example.com ", Name: "Owner", Password: password}, browser)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.session(in.Token), in.Token
}

// member creates an account with a role in the actor's organization.
func (k *kit) member(by account.Actor, email string, role account.Role) account.Session {
	k.t.Helper()
	link, _, err := k.Invitations.Invite(k.t.Context(), by, email, role)
	if err != nil {
		k.t.Fatal(err)
	}
	in, err := k.Invitations.Accept(k.t.Context(), k.tokenOf(link), account.NewPerson{Name: "Somebody", Password: password},
		browser)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.session(in.Token)
}

// tenant creates another organization and returns its owner's session.
func (k *kit) tenant(slug string) account.Session {
	k.t.Helper()
	server := account.ServerActor(account.MainOrg)
	if _, err := k.Organizations.Create(k.t.Context(), server, slug, "Tenant "+slug); err != nil {
		k.t.Fatal(err)
	}
	link, err := k.Invitations.OwnerLink(k.t.Context(), server, slug, "")
	if err != nil {
		k.t.Fatal(err)
	}
	in, err := k.Invitations.Accept(k.t.Context(), k.tokenOf(link),
		account.NewPerson{Email: "owner@" + slug + ".example", Name: "Owner", Password: password}, browser)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.session(in.Token)
}

// wantError checks an error.
func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantLimit checks that a limit was reached, and that the error names it.
func wantLimit(t *testing.T, got error, limit string) {
	t.Helper()
	if !account.IsLimit(got) || !strings.Contains(got.Error(), limit) {
		t.Errorf("%v, want %s", got, limit)
	}
}

// wantInvalid checks that a field was rejected.
func wantInvalid(t *testing.T, what string, err error, field string) {
	t.Helper()
	wrong := (*invalid.Error)(nil)
	if !errors.As(err, &wrong) {
		t.Errorf("%s: %v, want a problem with %s", what, err, field)
		return
	}
	for _, p := range wrong.Problems {
		if p.Field == field {
			return
		}
	}
	t.Errorf("%s: %v, want a problem with %s", what, err, field)
}

// wantVerb checks that an operation was logged.
func (k *kit) wantVerb(org account.Organization, verb string) {
	k.t.Helper()
	if verbs := k.log.verbs(org); !slices.Contains(verbs, verb) {
		k.t.Errorf("recorded %v, want %s", verbs, verb)
	}
}
