package account_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		closed string
	}{
		{"", ""},
		{"read", "read"},
		{"pull", "pull"},
		{"pull read", "read pull"},
		{"connect", "connect"},
		{"operate", "read pull connect operate"},
		{"admin", "read pull connect operate admin"},
		{" admin\tread ", "read pull connect operate admin"},
	} {
		s, err := account.ParseScope(test.text)
		if err != nil || s.Closed().String() != test.closed {
			t.Errorf("%q: closed %q, %v, want %q", test.text, s.Closed(), err, test.closed)
		}
		for _, name := range []string{"read", "pull", "connect", "operate", "admin"} {
			one, _ := account.ParseScope(name)
			if got, want := s.Has(one), strings.Contains(test.closed, name); got != want {
				t.Errorf("%q has %s: %t", test.text, name, got)
			}
		}
	}
	for _, text := range []string{"all", "Read", "read,pull", "read operat"} {
		if _, err := account.ParseScope(text); !errors.Is(err, account.ErrUnknownName) {
			t.Errorf("scope %q: %v", text, err)
		}
	}
	if account.Scope(0xe0).Closed() != 0 {
		t.Error("unknown bits are accepted as a scope")
	}
}

func FuzzParseScope(f *testing.F) {
	f.Add("read pull connect operate admin")
	f.Add(" admin ")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := account.ParseScope(text)
		if err != nil {
			return
		}
		if again, err := account.ParseScope(s.String()); err != nil || again != s {
			t.Errorf("%q: %q, then %q, %v", text, s, again, err)
		}
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"owner": "read pull connect operate admin",
		"operator": "read pull connect operate", "viewer": "read"} {
		r, err := account.ParseRole(text)
		if err != nil || r.Scopes().String() != want {
			t.Errorf("%s may %q, %v, want %q", text, r.Scopes(), err, want)
		}
	}
	for _, text := range []string{"", "Owner", "admin"} {
		if _, err := account.ParseRole(text); !errors.Is(err, account.ErrUnknownName) {
			t.Errorf("role %q: %v", text, err)
		}
		if account.Role(text).Scopes() != 0 {
			t.Errorf("role %q has scopes", text)
		}
	}
}

func TestActor(t *testing.T) {
	t.Parallel()
	if (account.Actor{Scopes: account.Admin}).May(account.Read) || (account.Actor{}).May(0) {
		t.Error("the zero actor has permissions")
	}
	server := account.ServerActor(account.MainOrg)
	if !server.May(account.Admin|account.Read) || server.ID != uuid.Nil ||
		server.Org.String() != "00000000-0000-8000-8000-000000000001" {
		t.Errorf("server %+v", server)
	}
	viewer := account.Actor{Kind: account.Person, Scopes: account.Viewer.Scopes()}
	if !viewer.May(account.Read) || viewer.May(account.Pull) || viewer.May(account.Read|account.Operate) {
		t.Errorf("viewer %+v", viewer)
	}
	for kind, want := range map[account.Kind]string{account.Person: "person", account.Token: "token",
		account.Server: "server", 0: "nobody", 9: "nobody"} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d: %s, want %s", kind, got, want)
		}
	}
}
