package main

import (
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
)

// TestServerFlags: all commands that talk to a server have the same flags to name it.
func TestServerFlags(t *testing.T) {
	t.Parallel()
	root := rootCommand(&cli.Terminal{Env: func(string) string { return "" }})
	like, _, err := root.Find([]string{"room"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"load", "site", "token", "account", "organization", "clock"} {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"server", "data"} {
			want, got := like.Flag(flag), c.Flag(flag)
			if want == nil || got == nil || got.Usage != want.Usage || got.DefValue != want.DefValue ||
				got.Value.Type() != want.Value.Type() {
				t.Errorf("--%s of %s is %+v, want that of room, %+v", flag, name, got, want)
			}
		}
	}
}
