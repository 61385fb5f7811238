package room

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

func revokeCommand(m *remote.Manager) *cobra.Command {
	var reason string
	var many listFlags
	c := &cobra.Command{
		Use:   "revoke SLUG [TICKET]",
		Short: "Take visitors' places away",
		Long: `Take the place of a ticket away; proofline room restore gives it back. This is an entry in the public
transcript, and the visitor's page says that it was the organizer's decision. Both
name the reason if there is one: bot, duplicate (one of a visitor's several
places), fraud, or request (the visitor's own).

With --list, the tickets are the lines of a file. With --method, they are those
that have shown a credential which failed later: those with certain nullifiers,
which the issuer withdraws, or all of them. Of each 10,000 tickets all lose their
places, or none. A bad line or an unknown ticket stops the command before anything is done.
Visitors who were admitted keep their sessions.`,
		Example: `  proofline room revoke sale cda3f665-387e-8031-a3d9-8534adbd7fa3 --reason bot
  proofline room revoke sale --list bots.csv --reason bot --check
  proofline room revoke sale --method members --nullifiers withdrawn.txt --reason fraud`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if isOne, err := many.checkArgs(c, args); err != nil || !isOne {
				if err == nil {
					err = revokeMany(m, c, &many, args[0], reason)
				}
				return err
			}
			var ticket struct{ Ticket, Status string }
			path := roomPath(args[0], "/tickets/"+url.PathEscape(args[1])+"/revoke")
			class, err := classOf(reason)
			if err != nil {
				return err
			}
			body, err := json.Marshal(wire.RevokeInput{Reason: class})
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
	many.add(c)
	return c
}

func restoreCommand(m *remote.Manager) *cobra.Command {
	var since uint64
	var noWait bool
	var many listFlags
	c := &cobra.Command{
		Use:   "restore SLUG [TICKET]",
		Short: "Give revoked places back",
		Long: `Give a revoked ticket its place back, once. This is an entry in the public
transcript. If the line has passed the place, the visitor is called at once: that
needs outflow and seats, and the room must not be paused. A visitor who had been
called has the time to go in that was left.

A list that was revoked by mistake is restored with the same list. With --since,
tickets that were revoked before stay so: proofline room revoke prints the entry.
Those that the line has passed are called as fast as outflow and seats allow: the
command goes on until all are given back.`,
		Example: `  proofline room restore sale cda3f665-387e-8031-a3d9-8534adbd7fa3
  proofline room restore sale --list bots.csv --since 51203`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if isOne, err := many.checkArgs(c, args); err != nil || !isOne {
				if err == nil {
					err = restoreMany(m, c, &many, args[0], since, noWait)
				}
				return err
			}
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
	c.Flags().Uint64Var(&since, "since", 0, "only tickets that entry `N` of the transcript or a later one revoked")
	c.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for tickets of a list that cannot be called at once")
	many.add(c)
	return c
}

// classOf returns the class of a reason, as the transcript names it.
func classOf(reason string) (fairness.Reason, error) {
	switch reason {
	case "":
		return fairness.Revoked, nil
	case "bot", "duplicate", "fraud", "request":
		return fairness.Revoked + "-" + fairness.Reason(reason), nil
	}
	return "", cli.Usage(fmt.Errorf("--reason: %q is not a known reason", reason),
		"give bot, duplicate, fraud or request")
}
