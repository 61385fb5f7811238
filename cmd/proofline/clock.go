package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func clockCommand(t *terminal) *cobra.Command {
	o := &organizer{terminal: t, missing: missingOrganization}
	c := &cobra.Command{
		Use:   "clock",
		Short: "Say which time is right after the database's clock has jumped",
		Long: `Say which time is right after the database's clock has jumped. It takes the
management token of a running server, which it has written to DIR/admin-token.`,
		Example:           "  proofline clock confirm",
		Args:              cobra.NoArgs,
		RunE:              func(*cobra.Command, []string) error { return errors.New("a command is missing after clock") },
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	c.AddCommand(o.confirmClockCommand())
	return c
}

func (o *organizer) confirmClockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Have all servers go by the database's clock again",
		Long: `Have all servers go by the database's clock again, which has jumped by more than
five seconds. Until then rooms go on by the time before the jump. Confirm it only
when that clock is right now: entries get their time by it. A clock that is set
back needs no confirmation, and one that agrees with the clocks of all servers for
half a minute is taken without.`,
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
			return o.printf("all servers go by the database's clock within a second\n")
		}),
	}
}
