package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func (o *organizer) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause SLUG",
		Short: "Hold all calls; people can still join",
		Long: `Hold all calls of a room. People can still join, the time to claim a call stands
still, and the pause is an entry of the transcript.`,
		Example: "  proofline room pause sale",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodPost, roomPath(args[0], "/pause"), nil)
		}),
	}
}

func (o *organizer) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resume SLUG",
		Short:   "Let calls go on after a pause",
		Example: "  proofline room resume sale",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodPost, roomPath(args[0], "/resume"), nil)
		}),
	}
}
