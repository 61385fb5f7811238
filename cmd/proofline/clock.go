package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func clockCommand(t *terminal) *cobra.Command {
	o := &organizer{terminal: t, missing: missingOrganization}
	c := &cobra.Command{
		Use:   "clock",
		Short: "Confirm the database's clock after it has jumped",
		Long: `Confirm the database's clock after it has jumped. This takes the server's own
management token, which it has written to DIR/admin-token.`,
		Example: "  proofline clock confirm",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("a command is missing after clock")
		},
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	c.AddCommand(o.confirmClockCommand())
	return c
}

func (o *organizer) confirmClockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Make all servers follow the database's clock again",
		Long: `Make all servers follow the database's clock again after it has jumped by more
than five seconds. Until then rooms continue with the time from before the jump.
Confirm the clock only if it is right: entries get their times from it. If the
clock returns to the right time, or agrees with the clocks of all servers for half
a minute, no confirmation is needed.`,
		Example: "  proofline clock confirm",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			client, err := o.client(c)
			if err != nil {
				return err
			}
			if _, err := client.Call(c.Context(), "POST", "/v1/clock/confirm", nil, nil); err != nil {
				return o.explain(err)
			}
			return o.printf("all servers follow the database's clock within a second\n")
		}),
	}
}
