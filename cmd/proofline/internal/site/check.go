package site

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

type siteCheckFlags struct {
	file, at string
	strict   bool
}

func checkSiteCommand(m *remote.Manager) *cobra.Command {
	var f siteCheckFlags
	c := &cobra.Command{
		Use:   "check NAME URL...",
		Short: "Show which of a site's rules decides about each address, and find unprotected ones",
		Long: `Show which rule decides when a browser opens each address, and warn about similar
addresses that often show the same page but do not wait. No request is sent to
the site. With -f it checks the rules in a file before you apply them.

The exit code is 1 when the rules are invalid, and with --strict also when there
is a warning.`,
		Example: `  proofline site check shop https://shop.example.com/tickets
  proofline site check shop -f rules.json --strict https://shop.example.com/tickets`,
		Args: cobra.MinimumNArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error { return checkSite(m, c, args[0], args[1:], f) }),
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "`FILE` with rules to check instead; - for standard input")
	flags.StringVar(&f.at, "at", "", "`TIME` at which the addresses are opened (default now)")
	flags.BoolVar(&f.strict, "strict", false, "fail if there is a warning")
	return c
}

func checkSite(m *remote.Manager, c *cobra.Command, name string, urls []string, f siteCheckFlags) error {
	request := map[string]any{"urls": urls}
	if f.at != "" {
		at, err := parseTime("--at", f.at)
		if err != nil {
			return err
		}
		request["at"] = at
	}
	if f.file != "" {
		document, err := readJSON(m, f.file)
		if err != nil {
			return err
		}
		request["rules"] = json.RawMessage(document)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	var found struct{ Findings []foundJSON }
	raw, err := m.Ask(c, http.MethodPost, sitePath(name, "/check"), body, &found)
	if err != nil {
		return err
	}
	warnings := 0
	for _, one := range found.Findings {
		warnings += len(one.Warnings)
	}
	if err := m.Print(raw, func() error { return printFound(m.Terminal, found.Findings) }); err != nil {
		return err
	}
	return strictly(f.strict, warnings)
}
