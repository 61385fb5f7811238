package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func (o *organizer) holdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hold SLUG",
		Short: "Pause, and let called visitors wait outside as well",
		Long: `Pause a room, and keep called visitors from going in as well: the brake for when
the site behind it is down. Their time to go in stands still. "room resume" ends
it.`,
		Example: "  proofline room hold sale",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodPost, roomPath(args[0], "/hold"), nil)
		}),
	}
}
