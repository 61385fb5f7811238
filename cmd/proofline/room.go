package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

// organizer has the flags of commands that use the management API.
type organizer struct {
	*terminal
	server       string
	data         string
	tokenFile    string
	organization string // empty: that of the token, or main
	json         bool
	missing      string // hint for status 404
}

func roomCommand(t *terminal) *cobra.Command {
	o := &organizer{terminal: t, missing: "list the rooms: proofline room list"}
	c := &cobra.Command{
		Use:   "room",
		Short: "Create and manage rooms on a server",
		Long: `Create and manage the rooms of a running server. This takes a management token,
from PROOFLINE_TOKEN or from a file: a server on this machine has written one.`,
		Example: `  proofline room create sale.json
  proofline room pause sale --server https://queue.example.com --token-file ./token`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("a command is missing after room")
		},
		PersistentPreRunE: t.fromEnv,
	}
	o.addFlags(c)
	o.addOrganization(c)
	c.AddCommand(
		o.createCommand(), o.applyCommand(), o.listCommand(), o.showCommand(), o.pauseCommand(), o.holdCommand(),
		o.resumeCommand(), o.amendCommand(), o.messageCommand(), o.revokeCommand(), o.endCommand(), o.archiveCommand(),
		o.duplicateCommand(), o.draftsCommand(),
	)
	return c
}

// addFlags adds the flags for server, token and output.
func (o *organizer) addFlags(c *cobra.Command) {
	flags := c.PersistentFlags()
	addServer(flags, o.terminal, &o.server, &o.data)
	flags.StringVar(&o.tokenFile, "token-file", "", "`FILE` of the management token (default DIR/admin-token)")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	inEnv(flags, "token-file")
}

// addServer adds the flags that name the server.
func addServer(flags *pflag.FlagSet, t *terminal, address, data *string) {
	flags.StringVar(address, "server", "", "`URL` of the server (default: that of DIR, else "+defaultServer+")")
	flags.StringVar(data, "data", t.dataDir(), "data `DIR` of a server on this machine")
	inEnv(flags, "server", "data")
}

const defaultServer = "http://127.0.0.1:8080"

// serverURL returns the address of the server that the flags name.
func serverURL(address, data string) (*url.URL, error) {
	if address == "" {
		kept, err := os.ReadFile(filepath.Join(data, server.AddressFile)) //nolint:gosec // the user names it
		if address = strings.TrimSpace(string(kept)); err != nil || address == "" {
			address = defaultServer
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, usage(fmt.Errorf("--server: %q is not the URL of a server", address),
			"give one such as https://queue.example.com")
	}
	return u, nil
}

// addOrganization adds the flag that names the organization.
func (o *organizer) addOrganization(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.StringVar(&o.organization, "organization", "",
		"`SLUG` of the organization, with the server's own token (default main)")
	inEnv(flags, "organization")
}

// client returns a client of the server that the flags name.
func (o *organizer) client(c *cobra.Command) (*api.Client, error) {
	u, err := serverURL(o.server, o.data)
	if err != nil {
		return nil, err
	}
	token, err := o.token(c)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		o.warn("the token is sent over the network unencrypted: use an https URL if there is one")
	}
	client := &api.Client{Base: strings.TrimRight(u.String(), "/"), Token: token, Header: http.Header{}}
	if o.organization != "" {
		client.Header.Set("Proofline-Organization", o.organization)
	}
	return client, nil
}

// token returns the management token: that of the flag, else of the environment, else
// of the file that a server on this machine has written.
func (o *organizer) token(c *cobra.Command) (string, error) {
	if token := o.env("PROOFLINE_TOKEN"); token != "" && !c.Flags().Changed("token-file") {
		return token, nil
	}
	file := o.tokenFile
	if file == "" {
		file = filepath.Join(o.data, server.TokenFile)
	}
	token, err := secret.Read(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", usage(err, "give the management token with --token-file FILE or in PROOFLINE_TOKEN, "+
			"or the server's data directory with --data")
	case errors.Is(err, secret.ErrExposed):
		return "", failed(err, "restrict it to its owner: chmod 600 "+file)
	}
	return token, err
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ask sends a management request, decodes the answer into result, and also returns
// it verbatim.
func (o *organizer) ask(c *cobra.Command, method, path string, body []byte, result any) (json.RawMessage, error) {
	client, err := o.client(c)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if _, err := client.Call(c.Context(), method, path, body, &raw); err != nil {
		return nil, o.explain(err)
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return nil, failed(fmt.Errorf("%w: %w", api.ErrAnswer, err), "check --server")
	}
	return raw, nil
}

// explain adds exit code and hint to an error of a management request.
func (o *organizer) explain(err error) error {
	problem := (*api.Problem)(nil)
	switch {
	case errors.Is(err, context.Canceled):
		return failed(errors.New("interrupted; the server may or may not have done it"), "")
	case errors.Is(err, api.ErrUnreachable):
		return &exit{exitUnreachable, err, "is the server running? proofline serve; or name another with --server"}
	case !errors.As(err, &problem):
		return failed(err, "check --server")
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
			return failed(err, `a visitor finds the ticket on the page "Check my place", under the technical details`)
		}
		hint = o.missing
		if problem.Title == "Unknown organization" {
			hint = missingOrganization
		}
	case http.StatusInternalServerError:
		hint = "the server's log has more under request " + problem.RequestID
	}
	return failed(err, hint)
}

// roomPath returns the path of a room in the management API.
func roomPath(slug, action string) string {
	return "/v1/rooms/" + url.PathEscape(slug) + action
}

// print prints the server's answer as JSON, or calls text to print it for people.
func (o *organizer) print(raw json.RawMessage, text func() error) error {
	if o.json {
		return o.printJSON(raw)
	}
	return text()
}
