package room

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func archiveCommand(m *remote.Manager) *cobra.Command {
	var undo bool
	c := &cobra.Command{
		Use:   "archive SLUG",
		Short: "Hide a room that has ended from lists",
		Long: `Hide a room that has ended from lists. Its transcript stays published, and
"room list --archived" shows the room.`,
		Example: "  proofline room archive sale\n  proofline room archive sale --undo",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			action, done := "/archive", "room %s is archived\n"
			if undo {
				action, done = "/unarchive", "room %s is in lists again\n"
			}
			var room wire.Room
			raw, err := m.Ask(c, http.MethodPost, roomPath(args[0], action), nil, &room)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error { return m.Printf(done, room.Slug) })
		}),
	}
	c.Flags().BoolVar(&undo, "undo", false, "show the room in lists again")
	return c
}
