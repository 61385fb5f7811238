package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func (o *organizer) holdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hold SLUG",
		Short: "Pause, and freeze the claims of called visitors too",
		Long: `Pause a room and freeze claims: called visitors cannot enter either, and their
claim time stands still. Use it when the site behind the room is down. "room
resume" ends it.`,
		Example: "  proofline room hold sale",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodPost, roomPath(args[0], "/hold"), nil)
		}),
	}
}
