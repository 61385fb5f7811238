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
	o := &organizer{terminal: t, missing: "see the sites there are: proofline site list"}
	c := &cobra.Command{
		Use:   "site",
		Short: "Say which addresses of a site wait in line",
		Long: `Give the sites of an organization their rules, on a running server, and see which
connectors go by them. Connectors get the rules from the server, signed: they
need the address that "site show" has, the key of "site key", and a token made
with "token create NAME --scope connect".`,
		Example: `  proofline site apply shop rules.json
  proofline site check shop https://shop.example.com/tickets
  proofline site connectors shop`,
		Args:              cobra.NoArgs,
		RunE:              func(*cobra.Command, []string) error { return errors.New("a command is missing after site") },
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	o.addOrganization(c)
	c.AddCommand(o.listSitesCommand(), o.showSiteCommand(), o.applySiteCommand(), o.checkSiteCommand(), o.siteConnectorsCommand(),
		o.siteHistoryCommand(), o.restoreSiteCommand(), o.deleteSiteCommand(), o.siteKeyCommand())
	return c
}

// sitePath is where a site is managed.
func sitePath(name, rest string) string { return "/v1/sites/" + url.PathEscape(name) + rest }

func (o *organizer) listSitesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sites, and how many connectors go by their rules",
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
		rows = append(rows, []string{s.Name, serialWords(s.Serial), connectors, s.Changed.Local().Format(time.DateTime), s.By, hostWords(s.Hosts)})
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
		Short: "Show a site, and what may be a mistake in its rules",
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
	c.Flags().BoolVar(&bare, "rules", false, "print the rules alone, as they were written")
	c.Flags().Uint64Var(&serial, "serial", 0, "print rules of before instead, named by their `SERIAL`")
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
		{"changed", s.Changed.Local().Format("2006-01-02 15:04:05 MST") + ", by " + s.By}, {"hosts", hostWords(s.Hosts)},
	}
	for _, r := range s.Rooms {
		rows = append(rows, []string{"room", r})
	}
	return errors.Join(o.printTable(rows...), o.printWarnings(s.Warnings))
}

// printWarnings says what may be a mistake.
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
		Long: `Delete a site. Its connectors stay with the rules they have. A site of the same
name that is made later goes on counting its rules, and has this one's history.`,
		Example: "  proofline site delete shop",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			if err := o.remove(c, sitePath(args[0], "")); err != nil {
				return err
			}
			if o.json {
				return o.printJSON(map[string]string{"deleted": args[0]})
			}
			return o.printf("site %s is deleted; connectors stay with the rules they have\n", printable(args[0]))
		}),
	}
}

// remove deletes something, which is answered with nothing.
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
		Short: "Print the key that connectors verify rules with",
		Long: `Print the key that connectors verify the rules of all sites of the organization
with. It is public: give it to connectors as their site key, over a way that you
trust.`,
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
		Short:   "List the connectors of the last day, or those that go by the rules of a site",
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
		return o.printf("no connector has reported in the last day: each needs a token, made with proofline token create NAME --scope connect\n")
	}
	rows := [][]string{{"NODE", "SITE", "KIND", "VERSION", "RULES", "HEARD OF"}}
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
