package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func siteCommand(t *terminal) *cobra.Command {
	o := &organizer{terminal: t, missing: "list the sites: proofline site list"}
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
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("a command is missing after site")
		},
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	o.addOrganization(c)
	c.AddCommand(
		o.listSitesCommand(), o.showSiteCommand(), o.applySiteCommand(), o.checkSiteCommand(), o.siteConnectorsCommand(),
		o.siteHistoryCommand(), o.restoreSiteCommand(), o.deleteSiteCommand(), o.siteKeyCommand(),
	)
	return c
}

// sitePath returns the path of a site in the management API.
func sitePath(name, rest string) string { return "/v1/sites/" + url.PathEscape(name) + rest }

func (o *organizer) listSitesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sites, and how many connectors use their rules",
		Example: "  proofline site list\n  proofline site list --json",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			var list struct{ Sites []api.Site }
			raw, err := o.ask(c, http.MethodGet, "/v1/sites", nil, &list)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printSites(list.Sites) })
		}),
	}
}

func (o *organizer) printSites(sites []api.Site) error {
	if len(sites) == 0 {
		return o.printf("no sites yet: proofline site apply --help\n")
	}
	rows := [][]string{{"SITE", "RULES", "CONNECTORS", "CHANGED", "BY", "HOSTS"}}
	for _, s := range sites {
		connectors := strconv.Itoa(s.Connectors)
		if s.Behind > 0 {
			connectors += fmt.Sprintf(", %d behind", s.Behind)
		}
		rows = append(rows, []string{
			s.Name, serialWords(s.Serial), connectors, s.Changed.Local().Format(time.DateTime), s.By, hostWords(s.Hosts),
		})
	}
	return o.printTable(rows...)
}

func serialWords(serial uint64) string { return "serial " + strconv.FormatUint(serial, 10) }

func hostWords(hosts []string) string {
	if len(hosts) == 0 {
		return "any"
	}
	return strings.Join(hosts, " ")
}

func (o *organizer) showSiteCommand() *cobra.Command {
	var serial uint64
	var bare bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a site, with warnings about its rules",
		Example: `  proofline site show shop
  proofline site show shop --rules > rules.json
  proofline site show shop --serial 3`,
		Args: cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("serial") {
				return o.showSiteVersion(c, args[0], serial)
			}
			var site api.Site
			raw, err := o.ask(c, http.MethodGet, sitePath(args[0], ""), nil, &site)
			if err != nil {
				return err
			}
			return o.print(raw, func() error {
				if bare {
					return o.printf("%s\n", site.Rules)
				}
				return o.printSite(&site)
			})
		}),
	}
	c.Flags().BoolVar(&bare, "rules", false, "print only the rules, as they were written")
	c.Flags().Uint64Var(&serial, "serial", 0, "print the rules with this `SERIAL`, current or former")
	return c
}

func (o *organizer) showSiteVersion(c *cobra.Command, name string, serial uint64) error {
	var version api.SiteVersion
	raw, err := o.ask(c, http.MethodGet, sitePath(name, "/history/"+strconv.FormatUint(serial, 10)), nil, &version)
	if err != nil {
		return err
	}
	return o.print(raw, func() error { return o.printf("%s\n", version.Rules) })
}

func (o *organizer) printSite(s *api.Site) error {
	rows := [][]string{
		{"site", s.Name}, {"rules", s.URL}, {"serial", strconv.FormatUint(s.Serial, 10)},
		{"changed", s.Changed.Local().Format("2006-01-02 15:04:05 MST") + ", by " + s.By}, {"hosts",
			hostWords(s.Hosts)},
	}
	for _, r := range s.Rooms {
		rows = append(rows, []string{"room", r})
	}
	return errors.Join(o.printTable(rows...), o.printWarnings(s.Warnings))
}

// printWarnings prints warnings about rules.
func (o *organizer) printWarnings(list []api.Warning) error {
	for _, w := range list {
		if err := o.printf("  ! %s %s\n", printable(w.Field), printable(w.Detail)); err != nil {
			return err
		}
	}
	return nil
}

func (o *organizer) deleteSiteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a site",
		Long: `Delete a site. Its connectors keep their rules. If you create a site of the same
name later, it has this one's history, and its serials continue.`,
		Example: "  proofline site delete shop",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			if err := o.remove(c, sitePath(args[0], "")); err != nil {
				return err
			}
			if o.json {
				return o.printJSON(map[string]string{"deleted": args[0]})
			}
			return o.printf("site %s is deleted; its connectors keep their rules\n", printable(args[0]))
		}),
	}
}

// remove sends a DELETE, whose answer has no body.
func (o *organizer) remove(c *cobra.Command, path string) error {
	client, err := o.client(c)
	if err != nil {
		return err
	}
	answer, err := client.Do(c.Context(), http.MethodDelete, path, nil)
	if err == nil && answer.Status >= http.StatusBadRequest {
		err = answer.Problem()
	}
	if err != nil {
		return o.explain(err)
	}
	return nil
}

func (o *organizer) siteKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the key with which connectors verify rules",
		Long: `Print the key with which connectors verify the rules of all sites of the
organization. It is public: configure it in connectors as their site key, through
a channel that you trust.`,
		Example: "  proofline site key",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			var shown struct{ Key string }
			raw, err := o.ask(c, http.MethodGet, "/v1/site-key", nil, &shown)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printf("%s\n", printable(shown.Key)) })
		}),
	}
}

func (o *organizer) siteConnectorsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "connectors [NAME]",
		Short:   "List the connectors that reported in the last day, of all sites or one",
		Example: "  proofline site connectors\n  proofline site connectors shop --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			path := "/v1/connectors"
			if len(args) > 0 {
				path = sitePath(args[0], "/connectors")
			}
			var list struct{ Connectors []api.Connector }
			raw, err := o.ask(c, http.MethodGet, path, nil, &list)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printConnectors(list.Connectors) })
		}),
	}
}

func (o *organizer) printConnectors(list []api.Connector) error {
	if len(list) == 0 {
		return o.printf("no connector has reported in the last day: " +
			"each needs a token, made with proofline token create NAME --scope connect\n")
	}
	rows := [][]string{{"NODE", "SITE", "KIND", "VERSION", "RULES", "LAST REPORT"}}
	for _, n := range list {
		name, rules, seen := n.Site, serialWords(n.Serial), n.Seen.Local().Format(time.DateTime)
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
	return o.printTable(rows...)
}
