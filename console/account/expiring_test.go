package account_test

import (
	"slices"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
)

const day = 24 * time.Hour

// TestNotice checks which tokens get a notice, and when.
func TestNotice(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		scopes account.Scope
		life   time.Duration
		left   time.Duration
		unused time.Duration // since the last use; negative: never used
		want   account.Notice
	}{
		{"long before", account.Connect, 90 * day, 14*day + time.Second, 0, account.NoNotice},
		{"two weeks before", account.Connect, 90 * day, 14 * day, 0, account.NoticeSoon},
		{"four days before", account.Connect, 90 * day, 4 * day, 0, account.NoticeSoon},
		{"three days before", account.Connect, 90 * day, 3 * day, 0, account.NoticeLast},
		{"a second before", account.Connect, 90 * day, time.Second, 0, account.NoticeLast},
		{"at the end", account.Connect, 90 * day, 0, 0, account.NoticeEnd},
		{"a week after", account.Connect, 90 * day, 1 - 7*day, 7 * day, account.NoticeEnd},
		{"more than a week after", account.Connect, 90 * day, -7 * day, 7 * day, account.NoNotice},
		{"never used", account.Connect, 90 * day, day, -1, account.NoNotice},
		{"a connector that was there a week ago", account.Connect, 90 * day, day, 7 * day, account.NoticeLast},
		{"a connector that is away", account.Connect, 90 * day, day, 7*day + 1, account.NoNotice},
		{"a connector that was there a week before the end", account.Connect, 90 * day, -2 * day, 9 * day,
			account.NoticeEnd},
		{"a connector that was away at the end", account.Connect, 90 * day, -2 * day, 9*day + 1, account.NoNotice},
		{"one that connects among others", account.Read | account.Connect, 90 * day, day, 8 * day, account.NoNotice},
		{"a program that was there a month ago", account.Operate, 90 * day, day, 30 * day, account.NoticeLast},
		{"a program that is away", account.Operate, 90 * day, day, 30*day + 1, account.NoNotice},
		{"made for two weeks", account.Pull, 14 * day, 14 * day, 0, account.NoNotice},
		{"made for two weeks, at last", account.Pull, 14 * day, 3 * day, 0, account.NoticeLast},
		{"made for three days", account.Pull, 3 * day, day, 0, account.NoNotice},
		{"made for three days, ended", account.Pull, 3 * day, -1, 1, account.NoNotice},
		{"made for a little more, ended", account.Pull, 3*day + 1, -1, 1, account.NoticeEnd},
	} {
		expires, used := now.Add(c.left), now.Add(-c.unused)
		info := account.TokenInfo{Scopes: c.scopes, Created: expires.Add(-c.life), Expires: expires, Used: &used}
		if c.unused < 0 {
			info.Used = nil
		}
		if got := info.Notice(now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestExpiringTokens checks the lists for one organization and for the whole server.
func TestExpiringTokens(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	other := k.tenant("other")
	use := func(by account.Session, name string, life time.Duration) {
		t.Helper()
		text, _, err := k.Tokens.Make(ctx, by.Actor(), account.NewToken{Name: name, Scopes: account.Connect, Life: life})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Tokens.Authenticate(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	use(owner, "later", 33*day)
	use(owner, "soon", 21*day)
	use(owner, "ends", 19*day+time.Second)
	use(other, "theirs", 20*day)
	if _, _, err := k.Tokens.Make(ctx, owner.Actor(),
		account.NewToken{Name: "unused", Scopes: account.Connect, Life: 19 * day}); err != nil {
		t.Fatal(err)
	}
	k.pass(7 * day)
	viewer := account.Actor{Kind: account.Person, Org: owner.Org.ID, Scopes: account.Viewer.Scopes()}
	list := func(by *account.Actor) (names []string) {
		t.Helper()
		found, err := k.Tokens.AllExpiring(ctx)
		if by != nil {
			found, err = k.Tokens.Expiring(ctx, *by)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			if e.Left != e.Expires.Sub(k.clock()) || e.Notice == account.NoNotice ||
				(e.Org == other.Org.ID) != (e.Name == "theirs") {
				t.Errorf("listed %+v", e)
			}
			names = append(names, e.Name)
		}
		return names
	}
	for what, c := range map[string]struct {
		by   *account.Actor
		want []string
	}{"a viewer": {&viewer, []string{"ends", "soon"}}, "the server": {nil, []string{"ends", "theirs", "soon"}}} {
		if got := list(c.by); !slices.Equal(got, c.want) {
			t.Errorf("%s sees %q, want %q", what, got, c.want)
		}
	}
	_, err := k.Tokens.Expiring(ctx, account.Actor{Kind: account.Token, Org: owner.Org.ID, Scopes: account.Connect})
	wantError(t, "a connector", err, account.ErrForbidden)
}
