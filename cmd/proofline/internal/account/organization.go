package account

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

// OrganizationCommand returns "proofline organization".
func OrganizationCommand(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, remote.MissingOrganization)
	c := &cobra.Command{
		Use:   "organization",
		Short: "Create and list the organizations of a server, and limit them",
		Long: `Create and list the organizations of a running server. An organization's members,
rooms and tokens are invisible to others. Every server has one called main. This
takes the server's own management token, which it has written to DIR/admin-token.`,
		Example:           "  proofline organization create arena --name 'The Arena'\n  proofline organization quota arena --rooms 20",
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	c.AddCommand(createOrganizationCommand(m), listOrganizationsCommand(m), quotaCommand(m))
	return c
}

func createOrganizationCommand(m *remote.Manager) *cobra.Command {
	name := ""
	c := &cobra.Command{
		Use:     "create SLUG",
		Short:   "Create an organization, and a one-time link for its first owner",
		Example: "  proofline organization create arena --name 'The Arena'",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if name == "" {
				name = args[0]
			}
			body, err := json.Marshal(map[string]string{"slug": args[0], "name": name})
			if err != nil {
				return err
			}
			var made wire.Organization
			if _, err := m.Ask(c, "POST", "/v1/organizations", body, &made); err != nil {
				return err
			}
			return printOwnerLink(m, c, made.Slug, "")
		}),
	}
	c.Flags().StringVar(&name, "name", "", "display `NAME` (default the slug)")
	return c
}

// printOwnerLink makes a one-time link for an owner and prints it.
func printOwnerLink(m *remote.Manager, c *cobra.Command, slug, email string) error {
	body, err := json.Marshal(map[string]string{"email": email})
	if err != nil {
		return err
	}
	var made struct{ Link string }
	raw, err := m.Ask(c, "POST", "/v1/organizations/"+url.PathEscape(slug)+"/owner-link", body, &made)
	if err != nil {
		return err
	}
	return m.Print(raw, func() error {
		return m.Printf("this link makes its user an owner of %s; it works once, within a day:\n%s\n", slug, made.Link)
	})
}

func listOrganizationsCommand(m *remote.Manager) *cobra.Command {
	return remote.ListCommand(m, &cobra.Command{
		Use:     "list",
		Short:   "List the organizations",
		Example: "  proofline organization list\n  proofline organization list --json",
	}, "/v1/organizations", func(list wire.OrganizationList) error {
		rows := [][]string{{"ORGANIZATION", "CREATED", "NAME"}}
		for _, one := range list.Organizations {
			rows = append(rows, []string{one.Slug, one.Created.Local().Format(time.DateTime), one.Name})
		}
		return m.PrintTable(rows...)
	})
}
