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
		Long: `Take the place of a ticket away for good. This is an entry in the public
transcript, and the visitor's page says that it was the organizer's decision. Both
name the reason if there is one: bot, duplicate (one of a visitor's several
places), fraud, or request (the visitor's own).`,
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
			return o.print(raw, func() error { return o.printf("the place of ticket %s is revoked\n", ticket.Ticket) })
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "`REASON`: bot, duplicate, fraud or request (default unspecified)")
	return c
}

// revocation returns the body of a request that revokes a place.
func revocation(reason string) ([]byte, error) {
	switch reason {
	case "":
		return nil, nil
	case "bot", "duplicate", "fraud", "request":
		return []byte(`{"reason":"revoked-` + reason + `"}`), nil
	}
	return nil, usage(fmt.Errorf("--reason: %q is not a known reason", reason), "give bot, duplicate, fraud or request")
}
