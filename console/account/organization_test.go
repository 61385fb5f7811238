package account_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

func TestOrganizations(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	server := account.ServerActor(account.MainOrg)
	_, err := k.Organizations.Create(ctx, owner.Actor(), "mine", "Mine")
	wantError(t, "an owner", err, account.ErrForbidden)
	_, err = k.Organizations.Create(ctx, server, "-x", " ")
	wantInvalid(t, "slug", err, "slug")
	wantInvalid(t, "name", err, "name")
	if _, err := k.Organizations.Create(ctx, server, "arena", "Arena"); err != nil {
		t.Fatal(err)
	}
	_, err = k.Organizations.Create(ctx, server, "arena", "Arena")
	wantError(t, "again", err, account.ErrExists)
	if all, err := k.Organizations.List(ctx, server); err != nil || len(all) != 2 || all[0].Slug != "arena" {
		t.Errorf("organizations %v, %v", all, err)
	}
	if own, err := k.Organizations.List(ctx, owner.Actor()); err != nil || len(own) != 1 || own[0].Slug != "main" {
		t.Errorf("own %v, %v", own, err)
	}
	name := "Great halls"
	if o, err := k.Organizations.Change(ctx, owner.Actor(), account.OrganizationChange{Name: &name}); err != nil ||
		o.Name != name {
		t.Errorf("renamed %v, %v", o, err)
	}
	if o, err := k.Organizations.BySlug(ctx, "main"); err != nil || o.Name != name {
		t.Errorf("read %v, %v", o, err)
	}
	_, err = k.Organizations.BySlug(ctx, "nowhere")
	wantError(t, "nowhere", err, account.ErrNotFound)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	by := owner.Actor()
	member := k.member(by, "member@example.com", account.Operator)
	viewer := k.member(by, "viewer@example.com", account.Viewer)
	list, err := k.Members.List(ctx, viewer.Actor())
	if err != nil || len(list) != 3 || list[0].Email != "owner@example.com" || list[1].Role != "operator" ||
		list[2].Role != "viewer" {
		t.Fatalf("members %+v, %v", list, err)
	}
	wantError(t, "an operator", k.Members.SetRole(ctx, member.Actor(), member.Person, account.Owner), account.ErrForbidden)
	wantError(t, "an operator", k.Members.Remove(ctx, member.Actor(), viewer.Person), account.ErrForbidden)
	wantError(t, "the last owner", k.Members.SetRole(ctx, by, owner.Person, account.Viewer), account.ErrLastOwner)
	wantError(t, "the last owner", k.Members.Remove(ctx, by, owner.Person), account.ErrLastOwner)
	wantError(t, "nobody", k.Members.SetRole(ctx, by, uuid.New(), account.Viewer), account.ErrNotFound)
	wantInvalid(t, "no role", k.Members.SetRole(ctx, by, member.Person, "king"), "role")
	if err := k.Members.SetRole(ctx, by, member.Person, account.Owner); err != nil {
		t.Fatal(err)
	}
	if err := k.Members.Remove(ctx, by, owner.Person); err != nil {
		t.Errorf("leave to another owner: %v", err)
	}
	if err := k.Members.Remove(ctx, viewer.Actor(), viewer.Person); err != nil {
		t.Errorf("a viewer leaves: %v", err)
	}
	_, err = k.SignIns.SignIn(ctx, viewer.Email, password, browser)
	wantError(t, "the account went with its last organization", err, account.ErrCredentials)
	k.wantVerb(owner.Org, "member.role")
	k.wantVerb(owner.Org, "member.remove")
}

// TestLastOwnerTogether has two owners leave at once: one stays.
func TestLastOwnerTogether(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	owner, _ := k.owner()
	member := k.member(owner.Actor(), "member@example.com", account.Owner)
	var all sync.WaitGroup
	errs := make(chan error, 2)
	for _, s := range []account.Session{owner, member} {
		all.Go(func() { errs <- k.Members.Remove(t.Context(), s.Actor(), s.Person) })
	}
	all.Wait()
	if a, b := <-errs, <-errs; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), account.ErrLastOwner) {
		t.Errorf("%v and %v", a, b)
	}
}

// TestTenants checks that an owner cannot see or change another organization, even with known ids.
func TestTenants(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	by := owner.Actor()
	viewer := k.member(by, "member@example.com", account.Viewer)
	_, token, err := k.Tokens.Make(ctx, by, account.NewToken{Name: "ci", Scopes: account.Read})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Hosts.Add(ctx, by, "tickets.example.com"); err != nil {
		t.Fatal(err)
	}
	stranger := k.tenant("other").Actor()
	wantError(t, "role", k.Members.SetRole(ctx, stranger, viewer.Person, account.Owner), account.ErrNotFound)
	wantError(t, "member", k.Members.Remove(ctx, stranger, viewer.Person), account.ErrNotFound)
	wantError(t, "token", k.Tokens.Revoke(ctx, stranger, token.ID), account.ErrNotFound)
	wantError(t, "host", k.Hosts.Remove(ctx, stranger, "tickets.example.com"), account.ErrNotFound)
	wantError(t, "verify", k.Hosts.Verify(ctx, stranger, "tickets.example.com"), account.ErrNotFound)
	if list, err := k.Members.List(ctx, stranger); err != nil || len(list) != 1 {
		t.Errorf("members %v, %v", list, err)
	}
	if list, err := k.Tokens.List(ctx, stranger); err != nil || len(list) != 0 {
		t.Errorf("tokens %v, %v", list, err)
	}
	if list, err := k.Hosts.List(ctx, stranger); err != nil || len(list) != 0 {
		t.Errorf("hosts %v, %v", list, err)
	}
	if list, err := k.Invitations.List(ctx, stranger); err != nil || len(list) != 0 {
		t.Errorf("invitations %v, %v", list, err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	by := owner.Actor()
	for field, n := range map[string]account.NewToken{
		"name":    {Name: " ", Scopes: account.Read},
		"scopes":  {Name: "ci"},
		"expires": {Name: "ci", Scopes: account.Read, Life: 366 * 24 * time.Hour},
	} {
		_, _, err := k.Tokens.Make(ctx, by, n)
		wantInvalid(t, field, err, field)
	}
	_, _, err := k.Tokens.Make(ctx, by, account.NewToken{Name: "ci", Scopes: 0x81})
	wantInvalid(t, "unknown scope", err, "scopes")
	text, info, err := k.Tokens.Make(ctx, by, account.NewToken{Name: "ci", Scopes: account.Pull | account.Read})
	if err != nil || len(text) != 4+43 || text[:4] != "plt_" || !info.Expires.Equal(k.clock().Add(90*24*time.Hour)) {
		t.Fatalf("token %q %+v, %v", text, info, err)
	}
	actor, err := k.Tokens.Authenticate(ctx, text)
	want := account.Actor{Kind: account.Token, ID: info.ID, Name: "ci", Org: owner.Org.ID,
		Scopes: account.Pull | account.Read, Expires: info.Expires}
	if diff := cmp.Diff(want, actor); err != nil || diff != "" {
		t.Errorf("actor %v, -want +got\n%s", err, diff)
	}
	_, _, err = k.Tokens.Make(ctx, actor, account.NewToken{Name: "more", Scopes: account.Read})
	wantError(t, "a token makes tokens", err, account.ErrForbidden)
	for _, wrong := range []string{"", "plt_", text[:46], text + "A", "x" + text[1:], text[4:]} {
		_, err := k.Tokens.Authenticate(ctx, wrong)
		wantError(t, wrong, err, account.ErrToken)
	}
	if list, err := k.Tokens.List(ctx, by); err != nil || len(list) != 1 || list[0].MadeBy != "owner@example.com" ||
		list[0].Used == nil {
		t.Errorf("tokens %+v, %v", list, err)
	}
	k.pass(90*24*time.Hour - time.Second)
	if _, err = k.Tokens.Authenticate(ctx, text); err != nil {
		t.Error(err)
	}
	k.pass(time.Second)
	_, err = k.Tokens.Authenticate(ctx, text)
	wantError(t, "expired", err, account.ErrToken)
}

// TestRevokeToken checks that a token is revoked at once on this node and within five seconds on
// others.
func TestRevokeToken(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	elsewhere := account.New(k.options)
	ctx := t.Context()
	owner, _ := k.owner()
	text, info, err := k.Tokens.Make(ctx, owner.Actor(), account.NewToken{Name: "ci", Scopes: account.Operate})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*account.Accounts{k.Accounts, elsewhere} {
		if _, err := a.Tokens.Authenticate(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Tokens.Revoke(ctx, owner.Actor(), info.ID); err != nil {
		t.Fatal(err)
	}
	_, err = k.Tokens.Authenticate(ctx, text)
	wantError(t, "here", err, account.ErrToken)
	k.pass(account.TokenCached)
	_, err = elsewhere.Tokens.Authenticate(ctx, text)
	wantError(t, "elsewhere", err, account.ErrToken)
	wantError(t, "again", k.Tokens.Revoke(ctx, owner.Actor(), info.ID), account.ErrNotFound)
	k.wantVerb(owner.Org, "token.revoke")
}

// zone is an in-memory DNS.
type zone map[string][]string

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if values, ok := z[name]; ok {
		return values, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	dns := zone{}
	k := newKit(t, func(o *account.Options) { o.Resolver = dns })
	ctx := t.Context()
	owner, _ := k.owner()
	by, other := owner.Actor(), k.tenant("other").Actor()
	for _, wrong := range []string{"", "localhost", "example", "192.0.2.1", "[::1]", "::1", "a.example.com:443",
		"https://a.example.com", "a_b.example.com", "queue.example.com", "QUEUE.example.com.", "1.2.3.4.", "0x7f.1", "a..b", "*.example.com"} {
		_, err := k.Hosts.Add(ctx, by, wrong)
		wantInvalid(t, wrong, err, "host")
	}
	h, err := k.Hosts.Add(ctx, by, " Bücher.Example.com.")
	if err != nil || h.Host != "xn--bcher-kva.example.com" || h.Record != "_proofline.xn--bcher-kva.example.com" ||
		h.Verified != nil {
		t.Fatalf("host %+v, %v", h, err)
	}
	_, err = k.Hosts.Add(ctx, by, h.Host)
	wantError(t, "again", err, account.ErrExists)
	wantError(t, "no record", k.Hosts.Verify(ctx, by, h.Host), account.ErrUnverified)
	dns[h.Record+"."] = []string{"v=spf1", "proofline-wrong"}
	wantError(t, "another record", k.Hosts.Verify(ctx, by, h.Host), account.ErrUnverified)
	if _, ok, err := k.Hosts.Owner(ctx, h.Host); ok || err != nil {
		t.Errorf("an unverified host has an owner, %v", err)
	}
	dns[h.Record+"."] = []string{"v=spf1", h.Token}
	if err := k.Hosts.Verify(ctx, by, h.Host); err != nil {
		t.Fatal(err)
	}
	if org, ok, err := k.Hosts.Owner(ctx, "XN--Bcher-kva.example.com."); !ok || org != by.Org || err != nil {
		t.Errorf("owner %v, %t, %v", org, ok, err)
	}

	// Another organization claims the host, and gets it once it shows the TXT record.
	theirs, err := k.Hosts.Add(ctx, other, h.Host)
	if err != nil || theirs.Token == h.Token {
		t.Fatalf("claim %+v, %v", theirs, err)
	}
	wantError(t, "without the DNS", k.Hosts.Verify(ctx, other, h.Host), account.ErrUnverified)
	dns[h.Record+"."] = []string{theirs.Token}
	if err := k.Hosts.Verify(ctx, other, h.Host); err != nil {
		t.Fatal(err)
	}
	if org, ok, _ := k.Hosts.Owner(ctx, h.Host); !ok || org != other.Org {
		t.Errorf("owner %v, %t", org, ok)
	}
	if list, err := k.Hosts.List(ctx, by); err != nil || len(list) != 1 || list[0].Verified != nil {
		t.Errorf("hosts %+v, %v", list, err)
	}

	const room = `insert into rooms (room_id, slug, origin, title, org_id, host)
		values ($1, 'sale', 'o', 'Sale', $2, $3)`
	if _, err := k.pool.Exec(ctx, room, uuid.New(), other.Org, h.Host); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a room uses it", k.Hosts.Remove(ctx, other, h.Host), account.ErrInUse)
	if _, err := k.pool.Exec(ctx, "update rooms set ended_at = now()"); err != nil {
		t.Fatal(err)
	}
	if err := k.Hosts.Remove(ctx, other, h.Host); err != nil {
		t.Error(err)
	}
	if _, ok, _ := k.Hosts.Owner(ctx, h.Host); ok {
		t.Error("a removed host has an owner")
	}
}

// TestLimits checks that the errors of limits name the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	var err error
	for i := range 21 {
		_, err = k.Hosts.Add(ctx, owner.Actor(), "a"+string(rune('a'+i))+".example.com")
	}
	wantLimit(t, err, "at most 20 custom hosts")
	for range 101 {
		_, _, err = k.Tokens.Make(ctx, owner.Actor(), account.NewToken{Name: "ci", Scopes: account.Read})
	}
	wantLimit(t, err, "at most 100 tokens")
}

// TestHostsWithoutDatabase checks that cached hosts are used while the database is down.
func TestHostsWithoutDatabase(t *testing.T) {
	t.Parallel()
	dns := zone{}
	k := newKit(t, func(o *account.Options) { o.Resolver = dns })
	ctx := t.Context()
	owner, _ := k.owner()
	h, err := k.Hosts.Add(ctx, owner.Actor(), "queue.halls.example")
	if err != nil {
		t.Fatal(err)
	}
	dns[h.Record+"."] = []string{h.Token}
	if err := k.Hosts.Verify(ctx, owner.Actor(), h.Host); err != nil {
		t.Fatal(err)
	}
	elsewhere := account.New(k.options)
	for _, a := range []*account.Accounts{k.Accounts, elsewhere} {
		if _, ok, err := a.Hosts.Owner(ctx, h.Host); !ok || err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Hosts.Remove(ctx, owner.Actor(), h.Host); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := elsewhere.Hosts.Owner(ctx, h.Host); !ok {
		t.Error("another node reads the database for every request")
	}
	k.pass(5 * time.Second)
	if _, ok, err := elsewhere.Hosts.Owner(ctx, h.Host); ok || err != nil {
		t.Errorf("five seconds later elsewhere: %t, %v", ok, err)
	}
	k.pool.Close()
	k.pass(time.Hour)
	if _, _, err := elsewhere.Hosts.Owner(ctx, h.Host); err != nil {
		t.Errorf("without the database: %v", err)
	}
	if _, _, err := account.New(k.options).Hosts.Owner(ctx, h.Host); err == nil {
		t.Error("no error without a cache")
	}
}
