package site

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/connector/rules"
)

// ConnectorCommand returns "proofline connector".
func ConnectorCommand(t *cli.Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:     "connector",
		Short:   "Check the rules of a site's connector",
		Example: "  proofline connector check -f rules.json https://shop.example.com/tickets",
		Args:    cobra.NoArgs,
		RunE:    cli.CommandMissing,
	}
	c.AddCommand(connectorCheckCommand(t))
	return c
}

type connectorCheckFlags struct {
	file, at     string
	strict, json bool
}

func connectorCheckCommand(t *cli.Terminal) *cobra.Command {
	var f connectorCheckFlags
	c := &cobra.Command{
		Use:   "check -f RULES URL...",
		Short: "Show which rule decides about each address, and find unprotected ones",
		Long: `Show which rule decides when a browser opens each address, and warn about similar
addresses that often show the same page but do not wait: with www., with
index.html, in a language. No request is sent.

The exit code is 1 when the rules are invalid, and with --strict also when there
is a warning.`,
		Example: `  proofline connector check -f rules.json https://shop.example.com/tickets
  proofline connector check -f rules.json --at 2027-01-01T10:00:00Z --strict https://shop.example.com/tickets`,
		Args: cobra.MinimumNArgs(1),
		RunE: cli.Runs(func(_ *cobra.Command, args []string) error { return f.run(t, args) }),
	}
	flags := c.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "`FILE` with the rules; - for standard input")
	flags.StringVar(&f.at, "at", "", "`TIME` at which the addresses are opened (default now)")
	flags.BoolVar(&f.strict, "strict", false, "fail if there is a warning")
	flags.BoolVar(&f.json, "json", false, "print findings as JSON")
	if err := c.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

func (f *connectorCheckFlags) run(t *cli.Terminal, urls []string) error {
	at := time.Now()
	if f.at != "" {
		var err error
		if at, err = parseTime("--at", f.at); err != nil {
			return err
		}
	}
	site, err := readRules(t, f.file)
	if err != nil {
		return err
	}
	findings, err := rules.Check(site, urls, at)
	if err != nil {
		return cli.Usage(err, "give addresses as a browser shows them")
	}
	if err := f.print(t, findings); err != nil {
		return err
	}
	warnings := 0
	for _, found := range findings {
		warnings += len(found.Warnings)
	}
	return strictly(f.strict, warnings)
}

// strictly returns an error if strict is set and there are warnings.
func strictly(strict bool, warnings int) error {
	if strict && warnings > 0 {
		return cli.Failed(fmt.Errorf("%d warnings", warnings), "name these addresses in rules, or leave out --strict")
	}
	return nil
}

// parseTime parses the value of a time flag.
func parseTime(flag, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, cli.Usage(fmt.Errorf("%s: %q is not an RFC 3339 time", flag, text),
			"give one such as 2027-01-01T10:00:00Z")
	}
	return at, nil
}

// readRules reads the rules of a connector.
func readRules(t *cli.Terminal, file string) (*rules.Site, error) {
	text, err := readText(t, file)
	if err != nil {
		return nil, err
	}
	site, err := rules.Parse(text)
	if invalid := (*rules.InvalidError)(nil); errors.As(err, &invalid) {
		err = fmt.Errorf("%s is not a valid rules document:", file)
		for _, p := range invalid.Problems {
			err = fmt.Errorf("%w\n  %s %s", err, cmp.Or(p.Field, "the document"), p.Detail)
		}
	}
	if err != nil {
		return nil, cli.Failed(err, "connector/rules/FORMAT.md describes rules")
	}
	return site, nil
}

// readText reads a file of rules, or standard input for "-".
func readText(t *cli.Terminal, file string) (text []byte, err error) {
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(t.In, rules.MaxSize+1))
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, cli.Failed(err, "name a readable rules file, or - for standard input")
	}
	return text, nil
}

// foundJSON is the outcome for one address, as --json prints it.
type foundJSON struct {
	URL      string   `json:"url"`
	Outcome  string   `json:"outcome"`
	Room     string   `json:"room,omitempty"`
	Rule     string   `json:"rule"`
	Warnings []string `json:"warnings"`
}

func (f *connectorCheckFlags) print(t *cli.Terminal, findings []rules.Finding) error {
	list := make([]foundJSON, len(findings))
	for i, found := range findings {
		d := found.Decision
		list[i] = foundJSON{found.URL, d.Outcome.String(), d.Room, d.Rule, append([]string{}, found.Warnings...)}
	}
	if f.json {
		return t.PrintJSON(list)
	}
	return printFound(t, list)
}

// printFound prints the outcome for each address.
func printFound(t *cli.Terminal, list []foundJSON) error {
	for _, l := range list {
		rule := "no rule"
		if l.Rule != rules.NoRule {
			rule = fmt.Sprintf("rule %q", l.Rule)
		}
		line := fmt.Sprintf("%s: %s (%s)", cli.Printable(l.URL), l.Outcome, rule)
		if l.Room != "" {
			line = fmt.Sprintf("%s: %s, room %s (%s)", cli.Printable(l.URL), l.Outcome, l.Room, rule)
		}
		for _, w := range l.Warnings {
			line += "\n  ! " + cli.Printable(w)
		}
		if err := t.Printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
