package account

import (
	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

// ClockCommand returns "proofline clock".
func ClockCommand(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, remote.MissingOrganization)
	c := &cobra.Command{
		Use:   "clock",
		Short: "Confirm the database's clock after it has jumped",
		Long: `Confirm the database's clock after it has jumped. This takes the server's own
management token, which it has written to DIR/admin-token.`,
		Example:           "  proofline clock confirm",
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	c.AddCommand(confirmClockCommand(m))
	return c
}

func confirmClockCommand(m *remote.Manager) *cobra.Command {
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
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			client, err := m.Client(c)
			if err != nil {
				return err
			}
			if _, err := client.Call(c.Context(), "POST", "/v1/clock/confirm", nil, nil); err != nil {
				return m.Explain(err)
			}
			return m.Printf("all servers follow the database's clock within a second\n")
		}),
	}
}
