package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func applySiteCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "apply NAME FILE.json",
		Short: "Set a site's rules from a file, or from standard input with -",
		Long: `Set a site's rules from a file, and create the site if it does not exist. Running
it again does nothing. Possible mistakes are printed as warnings:

  + site shop: created, version 1
    ! rooms.sale does not send visitors back to shop.example.com: ...
  ~ site shop: version 1 -> 2
  = site shop: nothing to change

connector/rules/FORMAT.md describes rules. If a room in them is on this server, it
must belong to the organization.`,
		Example: `  proofline site apply shop rules.json

  rules.json:
  {
    "version": 1,
    "hosts": ["shop.example.com"],
    "rooms": {"sale": {"url": "https://queue.example.com/r/sale", "failure": "fail-open-after 5m"}},
    "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]
  }`,
		Args: cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error { return applySite(m, c, args[0], args[1]) }),
	}
}

func applySite(m *remote.Manager, c *cobra.Command, name, file string) error {
	document, err := readJSON(m, file)
	if err != nil {
		return err
	}
	client, err := m.Client(c)
	if err != nil {
		return err
	}
	answer, err := client.Do(c.Context(), http.MethodGet, sitePath(name, ""), nil)
	if err != nil {
		return m.Explain(err)
	}
	var before, after wire.Site
	// The document is sent verbatim, to keep its layout.
	body := slices.Concat([]byte(`{"rules": `), document, []byte("}"))
	method, path := http.MethodPut, sitePath(name, "")
	switch problem := answer.Problem(); {
	case answer.Status == http.StatusNotFound && problem.Title == "Not found":
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		body = slices.Concat([]byte(`{"name": `), quoted, []byte(", "), body[1:])
		method, path = http.MethodPost, "/v1/sites"
	case answer.Status != http.StatusOK:
		return m.Explain(problem)
	default:
		if err := json.Unmarshal(answer.Body, &before); err != nil {
			return cli.Failed(fmt.Errorf("%w: %w", api.ErrAnswer, err), "check --server")
		}
		client.Header.Set("If-Match", answer.Header.Get("ETag"))
	}
	var raw json.RawMessage
	if _, err := client.Call(c.Context(), method, path, body, &raw); err != nil {
		return m.Explain(err)
	}
	if err := json.Unmarshal(raw, &after); err != nil {
		return cli.Failed(fmt.Errorf("%w: %w", api.ErrAnswer, err), "check --server")
	}
	return m.Print(raw, func() error { return printApplied(m, before.Version, &after) })
}

// readJSON reads a JSON file, or standard input for "-".
func readJSON(m *remote.Manager, file string) ([]byte, error) {
	text, err := readText(m.Terminal, file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, new(any)); err != nil {
		return nil, cli.Failed(fmt.Errorf("%s is not JSON: %w", file, err), "connector/rules/FORMAT.md describes rules")
	}
	return text, nil
}

// printApplied prints the change from the previous version; 0: the site is new.
func printApplied(m *remote.Manager, before uint64, s *wire.Site) error {
	var err error
	switch before {
	case 0:
		err = m.Printf("+ site %s: created, version %d\n", s.Name, s.Version)
	case s.Version:
		err = m.Printf("= site %s: nothing to change\n", s.Name)
	default:
		err = m.Printf("~ site %s: version %d -> %d\n", s.Name, before, s.Version)
	}
	return errors.Join(err, printWarnings(m, s.Warnings))
}
