package account

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/wire"
)

// TokenCommand returns "proofline token".
func TokenCommand(t *cli.Terminal) *cobra.Command {
	m := remote.New(t, "list the tokens: proofline token list")
	c := &cobra.Command{
		Use:   "token",
		Short: "Create and revoke tokens of the management API",
		Long: `Create and revoke an organization's tokens, with which programs use the
management API of a running server. A token has scopes and an expiry, and is
shown once.

  read     read everything in the organization
  pull     call visitors from a backend
  connect  fetch the rules of sites and report, as a connector
  operate  create, amend and control rooms, sites and webhooks
  admin    manage members, tokens, hosts and the organization itself

Operate implies read, pull and connect; admin implies all.`,
		Example:           "  proofline token create 'shop backend' --scope pull\n  proofline token list",
		Args:              cobra.NoArgs,
		RunE:              cli.CommandMissing,
		PersistentPreRunE: t.FromEnv,
	}
	m.AddFlags(c)
	m.AddOrganization(c)
	c.AddCommand(createTokenCommand(m), listTokensCommand(m), revokeTokenCommand(m))
	return c
}

func createTokenCommand(m *remote.Manager) *cobra.Command {
	var scopes []string
	var life time.Duration
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token, and print it once",
		Long: `Create a token and print it. It cannot be shown again. Its name and expiry are
printed to standard error.`,
		Example: `  proofline token create 'shop backend' --scope pull --life 720h
  (umask 077; proofline token create shop --scope connect > connector-token)`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			request := map[string]any{"name": args[0], "scopes": scopes}
			if c.Flags().Changed("life") {
				request["life"] = life.String()
			}
			body, err := json.Marshal(request)
			if err != nil {
				return err
			}
			var made wire.MadeToken
			raw, err := m.Ask(c, http.MethodPost, "/v1/tokens", body, &made)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				expires := made.Expires.Local().Format(time.DateTime)
				m.Note("token " + made.Name + ", id " + made.ID.String() + ", expires " + expires +
					"; it is not shown again:")
				return m.Printf("%s\n", made.Secret)
			})
		}),
	}
	c.Flags().StringSliceVar(&scopes, "scope", []string{"read"},
		"`SCOPE`: read, pull, connect, operate or admin; repeat the flag for several")
	c.Flags().DurationVar(&life, "life", 0,
		"time until the token expires, such as 720h, at most a year (default 90 days)")
	return c
}

func listTokensCommand(m *remote.Manager) *cobra.Command {
	return remote.ListCommand(m, &cobra.Command{
		Use:     "list",
		Short:   "List the tokens, newest first",
		Example: "  proofline token list\n  proofline token list --json",
	}, "/v1/tokens", func(list wire.TokenList) error { return printTokens(m, list.Tokens) })
}

func printTokens(m *remote.Manager, tokens []wire.Token) error {
	if len(tokens) == 0 {
		return m.Printf("no tokens yet: proofline token create --help\n")
	}
	now := time.Now()
	rows := [][]string{{"TOKEN", "SCOPES", "EXPIRES", "USED", "MADE BY", "NAME"}}
	for _, one := range tokens {
		used := "never"
		if one.Used != nil {
			used = one.Used.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{
			one.ID.String(), strings.Join(one.Scopes, " "), tokenEnd(one, now), used, one.MadeBy, one.Name,
		})
	}
	if err := m.PrintTable(rows...); err != nil {
		return err
	}
	for _, one := range tokens {
		if one.Notice != "" {
			m.Note(fmt.Sprintf("hint: %s is in use and %s; replace it with: proofline token create %s --scope %s",
				one.Name, endWords(one, now), quoted(one.Name), strings.Join(one.Scopes, ",")))
		}
	}
	return nil
}

// tokenEnd formats a token's expiry, with the number of days left if that is soon.
func tokenEnd(one wire.Token, now time.Time) string {
	text := one.Expires.Local().Format(time.DateTime)
	switch left := one.Expires.Sub(now); {
	case left <= 0:
		text += ", expired"
	case one.Notice != "":
		text += ", " + account.InDays(left)
	}
	return text
}

// endWords describes when a token expires, or that it has expired.
func endWords(one wire.Token, now time.Time) string {
	if left := one.Expires.Sub(now); left > 0 {
		return "expires " + account.InDays(left)
	}
	return "has expired"
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func revokeTokenCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: `Revoke a token, named by its id in the list. The server's other nodes follow
within five seconds.`,
		Example: "  proofline token revoke 7f0c2b7e-54bb-4f8f-9b3a-d1d3a3c3a2f1",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if err := m.Remove(c, "/v1/tokens/"+url.PathEscape(args[0])); err != nil {
				return err
			}
			return m.Print(map[string]string{"revoked": args[0]}, func() error {
				return m.Printf("token %s is revoked\n", cli.Printable(args[0]))
			})
		}),
	}
}
