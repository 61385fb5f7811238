package room

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

func pauseCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "pause SLUG",
		Short: "Stop calling visitors; joining stays open",
		Long: `Stop calling visitors of a room. Visitors can still join, the claim time stands
still, and the pause is an entry in the transcript.`,
		Example: "  proofline room pause sale",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return change(m, c, http.MethodPost, roomPath(args[0], "/pause"), nil)
		}),
	}
}

func freezeClaimsCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "freeze-claims SLUG",
		Short: "Pause, and freeze the claims of called visitors too",
		Long: `Pause a room and freeze claims: called visitors cannot enter either, and their
claim time stands still. Use it when the site behind the room is down. "room
resume" ends it.`,
		Example: "  proofline room freeze-claims sale",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return change(m, c, http.MethodPost, roomPath(args[0], "/freeze-claims"), nil)
		}),
	}
}

func resumeCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:     "resume SLUG",
		Short:   "Continue after a pause or a freeze of claims",
		Example: "  proofline room resume sale",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return change(m, c, http.MethodPost, roomPath(args[0], "/resume"), nil)
		}),
	}
}
