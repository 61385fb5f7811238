package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestServerFlags: all commands that talk to a server have the same flags to name it.
func TestServerFlags(t *testing.T) {
	t.Parallel()
	at := &terminal{env: func(string) string { return "" }}
	like := roomCommand(at)
	for _, c := range []*cobra.Command{
		loadCommand(at), siteCommand(at), tokenCommand(at), accountCommand(at), organizationCommand(at), clockCommand(at),
	} {
		for _, flag := range []string{"server", "data"} {
			want, got := like.Flag(flag), c.Flag(flag)
			if want == nil || got == nil || got.Usage != want.Usage || got.DefValue != want.DefValue ||
				got.Value.Type() != want.Value.Type() {
				t.Errorf("--%s of %s is %+v, want that of room, %+v", flag, c.Name(), got, want)
			}
		}
	}
}
