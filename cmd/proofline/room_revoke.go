package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func (o *organizer) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke SLUG TICKET",
		Short: "Take a visitor's place away",
		Long: `Take the place of a ticket away for good. It is an entry of the transcript that
everybody can see; the visitor's page says that it was the organizer's decision.`,
		Example: "  proofline room revoke sale cda3f665-387e-8031-a3d9-8534adbd7fa3",
		Args:    cobra.ExactArgs(2),
		RunE: runs(func(c *cobra.Command, args []string) error {
			var ticket struct{ Ticket, Status string }
			path := roomPath(args[0], "/tickets/"+url.PathEscape(args[1])+"/revoke")
			raw, err := o.ask(c, http.MethodPost, path, nil, &ticket)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printf("ticket %s has no place any more\n", ticket.Ticket) })
		}),
	}
}
