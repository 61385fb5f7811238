// Package remote contains what the commands that manage a running server share: flags for the
// server, the token and the organization, requests to the management API, and output of answers as
// text or JSON.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

// MissingOrganization is a hint for status 404.
const MissingOrganization = "list the organizations: proofline organization list"

// Manager manages the server that the flags name.
type Manager struct {
	*cli.Terminal
	server       Server
	tokenFile    string
	organization string // empty: the token's own, or main
	json         bool
	missing      string // hint for status 404
}

// New returns a manager whose hint for status 404 is missing.
func New(t *cli.Terminal, missing string) *Manager { return &Manager{Terminal: t, missing: missing} }

// AddFlags adds the flags for server, token and output.
func (m *Manager) AddFlags(c *cobra.Command) {
	flags := c.PersistentFlags()
	m.server.AddFlags(flags, m.Terminal)
	flags.StringVar(&m.tokenFile, "token-file", "", "`FILE` of the management token (default DIR/admin-token)")
	flags.BoolVar(&m.json, "json", false, "print JSON")
	cli.InEnv(flags, "token-file")
}

// AddOrganization adds the flag that names the organization.
func (m *Manager) AddOrganization(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.StringVar(&m.organization, "organization", "",
		"`SLUG` of the organization, with the server's own token (default main)")
	cli.InEnv(flags, "organization")
}

// ActIn makes the requests act in an organization.
func (m *Manager) ActIn(organization string) { m.organization = organization }

// Client returns a client of the server.
func (m *Manager) Client(c *cobra.Command) (*api.Client, error) {
	u, err := m.server.URL()
	if err != nil {
		return nil, err
	}
	token, err := m.token(c)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !IsLoopback(u.Hostname()) {
		m.Warn("the token is sent over the network unencrypted: use an https URL if there is one")
	}
	client := &api.Client{Base: strings.TrimRight(u.String(), "/"), Token: token, Header: http.Header{}}
	if m.organization != "" {
		client.Header.Set("Proofline-Organization", m.organization)
	}
	return client, nil
}

// token returns the management token: that of the flag, else of the environment, else
// of the file that a server on this machine has written.
func (m *Manager) token(c *cobra.Command) (string, error) {
	if token := m.Env("PROOFLINE_TOKEN"); token != "" && !c.Flags().Changed("token-file") {
		return token, nil
	}
	file := m.tokenFile
	if file == "" {
		file = filepath.Join(m.server.data, server.TokenFile)
	}
	token, err := secret.Read(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", cli.Usage(err, "give the management token with --token-file FILE or in PROOFLINE_TOKEN, "+
			"or the server's data directory with --data")
	case errors.Is(err, secret.ErrExposed):
		return "", cli.Failed(err, "restrict it to its owner: chmod 600 "+file)
	}
	return token, err
}

// Ask sends a management request, decodes the answer into result, and also returns
// it verbatim.
func (m *Manager) Ask(c *cobra.Command, method, path string, body []byte, result any) (json.RawMessage, error) {
	client, err := m.Client(c)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if _, err := client.Call(c.Context(), method, path, body, &raw); err != nil {
		return nil, m.Explain(err)
	}
	return raw, Decode(raw, result)
}

// ListCommand makes c get a list from a path of the management API, and print it with show or as JSON.
func ListCommand[T any](m *Manager, c *cobra.Command, path string, show func(T) error) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = cli.Runs(func(c *cobra.Command, _ []string) error {
		var list T
		raw, err := m.Ask(c, http.MethodGet, path, nil, &list)
		if err != nil {
			return err
		}
		return m.Print(raw, func() error { return show(list) })
	})
	return c
}

// Decode decodes a server's answer.
func Decode(raw []byte, result any) error {
	if err := json.Unmarshal(raw, result); err != nil {
		return cli.Failed(fmt.Errorf("%w: %w", api.ErrAnswer, err), "check --server")
	}
	return nil
}

// Remove sends a DELETE request, whose answer has no body.
func (m *Manager) Remove(c *cobra.Command, path string) error {
	client, err := m.Client(c)
	if err != nil {
		return err
	}
	answer, err := client.Do(c.Context(), http.MethodDelete, path, nil)
	if err == nil && answer.Status >= http.StatusBadRequest {
		err = answer.Problem()
	}
	if err != nil {
		return m.Explain(err)
	}
	return nil
}

// Explain adds exit code and hint to an error of a management request.
func (m *Manager) Explain(err error) error {
	problem := (*api.Problem)(nil)
	switch {
	case errors.Is(err, context.Canceled):
		return cli.Failed(errors.New("interrupted; the server may or may not have carried it out"), "")
	case errors.Is(err, api.ErrUnreachable):
		return cli.Unreachable(err, NotRunning)
	case !errors.As(err, &problem):
		return cli.Failed(err, "check --server")
	}
	hint := ""
	switch problem.Status {
	case http.StatusUnauthorized:
		hint = "the token is another server's: give the right one with --token-file or in PROOFLINE_TOKEN"
	case http.StatusForbidden:
		hint = "the token lacks the scope: see the tokens' scopes with proofline token list"
	case http.StatusPreconditionFailed:
		hint = "run it again"
	case http.StatusNotFound:
		if problem.Title == "Unknown ticket" {
			return cli.Failed(err,
				`a visitor finds the ticket on the page "Check my place", under the technical details`)
		}
		hint = m.missing
		if problem.Title == "Unknown organization" {
			hint = MissingOrganization
		}
	case http.StatusInternalServerError:
		hint = "the server's log has more under request " + problem.RequestID
	}
	return cli.Failed(err, hint)
}

// PrintsJSON reports whether the output is JSON.
func (m *Manager) PrintsJSON() bool { return m.json }

// Print prints a value as JSON, or calls text to print it as text.
func (m *Manager) Print(value any, text func() error) error {
	if m.json {
		return m.PrintJSON(value)
	}
	return text()
}
