// Package room implements "proofline room", whose commands create and manage rooms on a running
// server.
package room

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

// Command returns "proofline room".
func Command(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, "list the rooms: proofline room list")
	c := &cobra.Command{
		Use:   "room",
		Short: "Create and manage rooms on a server",
		Long: `Create and manage the rooms of a running server. This takes a management token,
from PROOFLINE_TOKEN or from a file: a server on this machine has written one.`,
		Example: `  proofline room create sale.json
  proofline room pause sale --server https://queue.example.com --token-file ./token`,
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	m.AddOrganization(c)
	c.AddCommand(
		createCommand(m), applyCommand(m), listCommand(m), showCommand(m), pauseCommand(m), freezeClaimsCommand(m),
		resumeCommand(m), amendCommand(m), messageCommand(m), revokeCommand(m), restoreCommand(m),
		tellCommand(m), endCommand(m), archiveCommand(m),
		codesCommand(m), voidCommand(m), duplicateCommand(m), draftsCommand(m),
	)
	return c
}

// roomPath returns the path of a room in the management API.
func roomPath(slug, action string) string {
	return "/v1/rooms/" + url.PathEscape(slug) + action
}
