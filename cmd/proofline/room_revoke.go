package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func (o *organizer) revokeCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "revoke SLUG TICKET",
		Short: "Take a visitor's place away",
		Long: `Take the place of a ticket away for good. It is an entry of the transcript that
everybody can see; the visitor's page says that it was the organizer's decision. A reason stands there as well: bot, duplicate
(one of several places of somebody), fraud, or request (the visitor's own).`,
		Example: "  proofline room revoke sale cda3f665-387e-8031-a3d9-8534adbd7fa3 --reason bot",
		Args:    cobra.ExactArgs(2),
		RunE: runs(func(c *cobra.Command, args []string) error {
			var ticket struct{ Ticket, Status string }
			path := roomPath(args[0], "/tickets/"+url.PathEscape(args[1])+"/revoke")
			body, err := revocation(reason)
			if err != nil {
				return err
			}
			raw, err := o.ask(c, http.MethodPost, path, body, &ticket)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printf("ticket %s has no place any more\n", ticket.Ticket) })
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "`CLASS` of reason: bot, duplicate, fraud or request (default none of these)")
	return c
}

// revocation is the body of a request to take a place away.
func revocation(reason string) ([]byte, error) {
	switch reason {
	case "":
		return nil, nil
	case "bot", "duplicate", "fraud", "request":
		return []byte(`{"reason":"revoked-` + reason + `"}`), nil
	}
	return nil, usage(fmt.Errorf("--reason: %q is no class of reason", reason), "give bot, duplicate, fraud or request")
}
