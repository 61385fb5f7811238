package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func (o *organizer) siteHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List the rules that a site has and had, the newest first",
		Example: `  proofline site history shop
  proofline site show shop --serial 3
  proofline site restore shop 3`,
		Args: cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			var list struct{ Versions []api.SiteVersion }
			raw, err := o.ask(c, http.MethodGet, sitePath(args[0], "/history"), nil, &list)
			if err != nil {
				return err
			}
			return o.print(raw, func() error {
				rows := [][]string{{"RULES", "CHANGED", "BY", "BYTES"}}
				for _, v := range list.Versions {
					rows = append(rows, []string{serialWords(v.Serial), v.Changed.Local().Format(time.DateTime), v.By, strconv.Itoa(v.Size)})
				}
				return o.printTable(rows...)
			})
		}),
	}
}

func (o *organizer) restoreSiteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restore NAME SERIAL",
		Short:   "Put rules of before back, under a new serial",
		Example: "  proofline site restore shop 3",
		Args:    cobra.ExactArgs(2),
		RunE: runs(func(c *cobra.Command, args []string) error {
			serial, err := strconv.ParseUint(args[1], 10, 63)
			if err != nil {
				return usage(fmt.Errorf("%q is no serial", printable(args[1])), "see those there are: proofline site history "+printable(args[0]))
			}
			var site api.Site
			raw, err := o.ask(c, http.MethodPost, sitePath(args[0], "/history/"+strconv.FormatUint(serial, 10)+"/restore"), nil, &site)
			if err != nil {
				return err
			}
			return o.print(raw, func() error {
				if err := o.printf("site %s has the rules of serial %d again, under serial %d\n", site.Name, serial, site.Serial); err != nil {
					return err
				}
				return o.printWarnings(site.Warnings)
			})
		}),
	}
}
