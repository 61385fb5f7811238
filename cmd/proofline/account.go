package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func accountCommand(t *terminal) *cobra.Command {
	o := &organizer{terminal: t, missing: missingOrganization}
	c := &cobra.Command{
		Use:   "account",
		Short: "Let people into a server's console",
		Long: `Let people into the console of a running server, with the server's own
management token, which it has written to DIR/admin-token.`,
		Example:           "  proofline account link --email owner@example.com",
		Args:              cobra.NoArgs,
		RunE:              func(*cobra.Command, []string) error { return errors.New("a command is missing after account") },
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	c.AddCommand(o.linkCommand())
	return c
}

func (o *organizer) linkCommand() *cobra.Command {
	organization, email := "main", ""
	c := &cobra.Command{
		Use:   "link",
		Short: "Make a one-time link for an owner, also one who has lost the password",
		Long: `Make a one-time link that makes an owner of an organization, for a day. With
--email it is for that person alone. Somebody who has an account, and has lost
the password or the second factor, chooses a new password by it: that ends all
sessions and takes the second factor away.`,
		Example: "  proofline account link\n  proofline account link --organization arena --email owner@example.com",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			return o.printOwnerLink(c, organization, email)
		}),
	}
	flags := c.Flags()
	flags.StringVar(&organization, "organization", organization, "`SLUG` of the organization")
	flags.StringVar(&email, "email", email, "e-mail `ADDRESS` of the person that the link is for")
	return c
}
