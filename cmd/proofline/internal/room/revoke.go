package room

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

func revokeCommand(m *remote.Manager) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "revoke SLUG TICKET",
		Short: "Take a visitor's place away",
		Long: `Take the place of a ticket away; proofline room restore gives it back. This is an entry in the public
transcript, and the visitor's page says that it was the organizer's decision. Both
name the reason if there is one: bot, duplicate (one of a visitor's several
places), fraud, or request (the visitor's own).`,
		Example: "  proofline room revoke sale cda3f665-387e-8031-a3d9-8534adbd7fa3 --reason bot",
		Args:    cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			var ticket struct{ Ticket, Status string }
			path := roomPath(args[0], "/tickets/"+url.PathEscape(args[1])+"/revoke")
			body, err := revocation(reason)
			if err != nil {
				return err
			}
			raw, err := m.Ask(c, http.MethodPost, path, body, &ticket)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error { return m.Printf("the place of ticket %s is revoked\n", ticket.Ticket) })
		}),
	}
	c.Flags().StringVar(&reason, "reason", "", "`REASON`: bot, duplicate, fraud or request (default unspecified)")
	return c
}

func restoreCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "restore SLUG TICKET",
		Short: "Give a revoked place back",
		Long: `Give a revoked ticket its place back, once. This is an entry in the public
transcript. If the line has passed the place, the visitor is called at once: that
needs outflow and seats, and the room must not be paused. A visitor who had been
called has the time to go in that was left.`,
		Example: "  proofline room restore sale cda3f665-387e-8031-a3d9-8534adbd7fa3",
		Args:    cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			var ticket struct{ Ticket, Status string }
			path := roomPath(args[0], "/tickets/"+url.PathEscape(args[1])+"/restore")
			raw, err := m.Ask(c, http.MethodPost, path, nil, &ticket)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				return m.Printf("ticket %s has its place again, and is %s\n", ticket.Ticket, ticket.Status)
			})
		}),
	}
}

// revocation returns the body of a request that revokes a place.
func revocation(reason string) ([]byte, error) {
	switch reason {
	case "":
		return nil, nil
	case "bot", "duplicate", "fraud", "request":
		return []byte(`{"reason":"revoked-` + reason + `"}`), nil
	}
	return nil, cli.Usage(fmt.Errorf("--reason: %q is not a known reason", reason),
		"give bot, duplicate, fraud or request")
}
