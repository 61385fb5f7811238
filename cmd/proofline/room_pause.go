package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func (o *organizer) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pause SLUG",
		Short: "Stop calling visitors; joining stays open",
		Long: `Stop calling visitors of a room. Visitors can still join, the claim time stands
still, and the pause is an entry in the transcript.`,
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
		Short:   "Continue after a pause or hold",
		Example: "  proofline room resume sale",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodPost, roomPath(args[0], "/resume"), nil)
		}),
	}
}
