// Package account implements the commands that manage who may use a running server: "proofline
// account", "proofline organization" and "proofline token". "proofline clock" is here, too.
package account

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

// Command returns "proofline account".
func Command(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, remote.MissingOrganization)
	c := &cobra.Command{
		Use:   "account",
		Short: "Give people access to a server's console",
		Long: `Give people access to the console of a running server. This takes the server's
own management token, which it has written to DIR/admin-token.`,
		Example:           "  proofline account link --email owner@example.com",
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	c.AddCommand(linkCommand(m), signInLinkCommand(m))
	return c
}

func linkCommand(m *remote.Manager) *cobra.Command {
	organization, email := "main", ""
	c := &cobra.Command{
		Use:   "link",
		Short: "Make a one-time link for an owner, or for a lost password",
		Long: `Make a link, valid once within a day, that makes its user an owner of an
organization. With --email only that person can use it. A person who has an
account, and has lost the password or the second factor, sets a new password
with it: that ends all sessions and removes the second factor.`,
		Example: "  proofline account link\n  proofline account link --organization arena --email owner@example.com",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			return printOwnerLink(m, c, organization, email)
		}),
	}
	flags := c.Flags()
	flags.StringVar(&organization, "organization", organization, "`SLUG` of the organization")
	flags.StringVar(&email, "email", email, "e-mail `ADDRESS` of the only person who can use the link")
	return c
}

func signInLinkCommand(m *remote.Manager) *cobra.Command {
	email := ""
	c := &cobra.Command{
		Use:   "sign-in-link",
		Short: "Make a one-time link that lets a browser sign in despite failed attempts",
		Long: `Make a one-time link for a person who cannot sign in because others are guessing
the account's password. The browser that opens the link within an hour may sign
in with the password as usual. For a lost password use "proofline account link".`,
		Example: "  proofline account sign-in-link --email owner@example.com",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			body, err := json.Marshal(map[string]string{"email": email})
			if err != nil {
				return err
			}
			var made struct{ Link string }
			raw, err := m.Ask(c, "POST", "/v1/sign-in-links", body, &made)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				return m.Printf("the browser that opens this link may sign in as %s with the password; "+
					"it works once, within an hour:\n%s\n", email, made.Link)
			})
		}),
	}
	c.Flags().StringVar(&email, "email", email, "e-mail `ADDRESS` of the person's account")
	return c
}
