package main

import (
	"errors"
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
		Short: "List a site's current and former rules, newest first",
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
					changed := v.Changed.Local().Format(time.DateTime)
					rows = append(rows, []string{serialWords(v.Serial), changed, v.By, strconv.Itoa(v.Size)})
				}
				return o.printTable(rows...)
			})
		}),
	}
}

func (o *organizer) restoreSiteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restore NAME SERIAL",
		Short:   "Restore former rules as a new serial",
		Example: "  proofline site restore shop 3",
		Args:    cobra.ExactArgs(2),
		RunE: runs(func(c *cobra.Command, args []string) error {
			serial, err := strconv.ParseUint(args[1], 10, 63)
			if err != nil {
				return usage(fmt.Errorf("%q is not a serial", printable(args[1])),
					"list its serials: proofline site history "+printable(args[0]))
			}
			var site api.Site
			path := sitePath(args[0], "/history/"+strconv.FormatUint(serial, 10)+"/restore")
			raw, err := o.ask(c, http.MethodPost, path, nil, &site)
			if err != nil {
				return err
			}
			return o.print(raw, func() error {
				err := o.printf("site %s has the rules of serial %d again, as serial %d\n", site.Name, serial,
					site.Serial)
				return errors.Join(err, o.printWarnings(site.Warnings))
			})
		}),
	}
}
