package site

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func siteHistoryCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List a site's current and former rules, newest first",
		Example: `  proofline site history shop
  proofline site show shop --version 3
  proofline site restore shop 3`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			var list wire.SiteHistory
			raw, err := m.Ask(c, http.MethodGet, sitePath(args[0], "/history"), nil, &list)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				rows := [][]string{{"RULES", "CHANGED", "BY", "BYTES"}}
				for _, v := range list.Versions {
					changed := v.Changed.Local().Format(time.DateTime)
					rows = append(rows, []string{versionWords(v.Version), changed, v.By, strconv.Itoa(v.Size)})
				}
				return m.PrintTable(rows...)
			})
		}),
	}
}

func restoreSiteCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:     "restore NAME VERSION",
		Short:   "Restore former rules as a new version",
		Example: "  proofline site restore shop 3",
		Args:    cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			version, err := strconv.ParseUint(args[1], 10, 63)
			if err != nil {
				return cli.Usage(fmt.Errorf("%q is not a version", cli.Printable(args[1])),
					"list its versions: proofline site history "+cli.Printable(args[0]))
			}
			var site wire.Site
			path := sitePath(args[0], "/history/"+strconv.FormatUint(version, 10)+"/restore")
			raw, err := m.Ask(c, http.MethodPost, path, nil, &site)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				err := m.Printf("site %s has the rules of version %d again, as version %d\n", site.Name, version,
					site.Version)
				return errors.Join(err, printWarnings(m, site.Warnings))
			})
		}),
	}
}
