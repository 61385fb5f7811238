// Package site implements "proofline site", which manages the rules of sites on a running server,
// and "proofline connector", which checks the rules in a file.
package site

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

// Command returns "proofline site".
func Command(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, "list the sites: proofline site list")
	c := &cobra.Command{
		Use:   "site",
		Short: "Manage the rules of sites on a server",
		Long: `Manage the rules of an organization's sites on a running server, and see which
connectors use them. Connectors fetch the signed rules from the server: they need
the address that "site show" prints, the key that "site key" prints, and a token
made with "token create NAME --scope connect".`,
		Example: `  proofline site apply shop rules.json
  proofline site check shop https://shop.example.com/tickets
  proofline site connectors shop`,
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	m.AddOrganization(c)
	c.AddCommand(
		listSitesCommand(m), showSiteCommand(m), applySiteCommand(m), checkSiteCommand(m), siteConnectorsCommand(m),
		siteHistoryCommand(m), restoreSiteCommand(m), deleteSiteCommand(m), siteKeyCommand(m),
	)
	return c
}

// sitePath returns the path of a site in the management API.
func sitePath(name, rest string) string { return "/v1/sites/" + url.PathEscape(name) + rest }

func listSitesCommand(m *remote.Manager) *cobra.Command {
	return remote.ListCommand(m, &cobra.Command{
		Use:     "list",
		Short:   "List the sites, and how many connectors use their rules",
		Example: "  proofline site list\n  proofline site list --json",
	}, "/v1/sites", func(list wire.SiteList) error { return printSites(m, list.Sites) })
}

func printSites(m *remote.Manager, sites []wire.SiteSummary) error {
	if len(sites) == 0 {
		return m.Printf("no sites yet: proofline site apply --help\n")
	}
	rows := [][]string{{"SITE", "RULES", "CONNECTORS", "CHANGED", "BY", "HOSTS"}}
	for _, s := range sites {
		connectors := strconv.Itoa(s.Connectors)
		if s.Behind > 0 {
			connectors += fmt.Sprintf(", %d behind", s.Behind)
		}
		rows = append(rows, []string{
			s.Name, versionWords(s.Version), connectors, s.Changed.Local().Format(time.DateTime), s.By,
			hostWords(s.Hosts),
		})
	}
	return m.PrintTable(rows...)
}

func versionWords(version uint64) string { return "version " + strconv.FormatUint(version, 10) }

func hostWords(hosts []string) string {
	if len(hosts) == 0 {
		return "any"
	}
	return strings.Join(hosts, " ")
}

func showSiteCommand(m *remote.Manager) *cobra.Command {
	var number uint64
	var bare bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a site, with warnings about its rules",
		Example: `  proofline site show shop
  proofline site show shop --rules > rules.json
  proofline site show shop --version 3`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("version") {
				return showSiteVersion(m, c, args[0], number)
			}
			var site wire.Site
			raw, err := m.Ask(c, http.MethodGet, sitePath(args[0], ""), nil, &site)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				if bare {
					return m.Printf("%s\n", site.Rules)
				}
				return printSite(m, &site)
			})
		}),
	}
	c.Flags().BoolVar(&bare, "rules", false, "print only the rules, as they were written")
	c.Flags().Uint64Var(&number, "version", 0, "print the rules with this `VERSION`, current or former")
	return c
}

func showSiteVersion(m *remote.Manager, c *cobra.Command, name string, number uint64) error {
	var version wire.SiteVersion
	raw, err := m.Ask(c, http.MethodGet, sitePath(name, "/history/"+strconv.FormatUint(number, 10)), nil, &version)
	if err != nil {
		return err
	}
	return m.Print(raw, func() error { return m.Printf("%s\n", version.Rules) })
}

func printSite(m *remote.Manager, s *wire.Site) error {
	rows := [][]string{
		{"site", s.Name}, {"rules", s.URL}, {"version", strconv.FormatUint(s.Version, 10)},
		{"changed", s.Changed.Local().Format("2006-01-02 15:04:05 MST") + ", by " + s.By}, {"hosts",
			hostWords(s.Hosts)},
	}
	for _, r := range s.Rooms {
		rows = append(rows, []string{"room", r})
	}
	return errors.Join(m.PrintTable(rows...), printWarnings(m, s.Warnings))
}

// printWarnings prints warnings about rules.
func printWarnings(m *remote.Manager, list []wire.Warning) error {
	for _, w := range list {
		if err := m.Printf("  ! %s %s\n", cli.Printable(w.Field), cli.Printable(w.Detail)); err != nil {
			return err
		}
	}
	return nil
}

func deleteSiteCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a site",
		Long: `Delete a site. Its connectors keep their rules. If you create a site of the same
name later, it has this one's history, and its versions continue.`,
		Example: "  proofline site delete shop",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if err := m.Remove(c, sitePath(args[0], "")); err != nil {
				return err
			}
			return m.Print(map[string]string{"deleted": args[0]}, func() error {
				return m.Printf("site %s is deleted; its connectors keep their rules\n", cli.Printable(args[0]))
			})
		}),
	}
}

func siteKeyCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the key with which connectors verify rules",
		Long: `Print the key with which connectors verify the rules of all sites of the
organization. It is public: configure it in connectors as their site key, through
a channel that you trust.`,
		Example: "  proofline site key",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			var shown wire.SiteKey
			raw, err := m.Ask(c, http.MethodGet, "/v1/site-key", nil, &shown)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error { return m.Printf("%s\n", cli.Printable(shown.Key)) })
		}),
	}
}

func siteConnectorsCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:     "connectors [NAME]",
		Short:   "List the connectors that reported in the last day, of all sites or one",
		Example: "  proofline site connectors\n  proofline site connectors shop --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			path := "/v1/connectors"
			if len(args) > 0 {
				path = sitePath(args[0], "/connectors")
			}
			var list wire.ConnectorList
			raw, err := m.Ask(c, http.MethodGet, path, nil, &list)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error { return printConnectors(m, list.Connectors) })
		}),
	}
}

func printConnectors(m *remote.Manager, list []wire.Connector) error {
	if len(list) == 0 {
		return m.Printf("no connector has reported in the last day: " +
			"each needs a token, made with proofline token create NAME --scope connect\n")
	}
	rows := [][]string{{"NODE", "SITE", "KIND", "VERSION", "RULES", "LAST REPORT"}}
	for _, n := range list {
		name, rules, seen := n.Site, versionWords(n.RulesVersion), n.Seen.Local().Format(time.DateTime)
		if name == "" {
			name, rules = "-", "its own"
		}
		if n.Behind {
			rules += ", behind"
		}
		if !n.Connected {
			seen += ", not since"
		}
		rows = append(rows, []string{n.Node, name, n.Kind, n.Version, rules, seen})
	}
	return m.PrintTable(rows...)
}
