package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func (o *organizer) archiveCommand() *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "archive SLUG",
		Short: "Leave a room that has ended out of lists",
		Long: `Leave a room that has ended out of lists. Its transcript stays where it is
published. "room list --archived" shows such rooms.`,
		Example: "  proofline room archive sale\n  proofline room archive sale --undo",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			action, said := "/archive", "room %s is archived\n"
			if undo {
				action, said = "/unarchive", "room %s is in lists again\n"
			}
			var room api.Room
			raw, err := o.ask(c, http.MethodPost, roomPath(args[0], action), nil, &room)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printf(said, room.Slug) })
		}),
	}
	c.Flags().BoolVar(&undo, "undo", false, "take it into lists again")
	return c
}
