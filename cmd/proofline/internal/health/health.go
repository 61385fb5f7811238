// Package health implements "proofline health", with which container runtimes check a program in an
// image that has no shell.
package health

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
)

// Command returns "proofline health".
func Command(t *cli.Terminal) *cobra.Command {
	var limit time.Duration
	c := &cobra.Command{
		Use:   "health [URL]",
		Short: "Check that a server on this machine answers",
		Long: `Request a URL, and succeed if the status is 2xx. Without a URL it is /readyz of
"proofline serve" on this machine, at the port of $PROOFLINE_ADDR or 8080: it is
200 while the server can accept joins. Container runtimes run this command as
health check. An issuer and a witness have /healthz,
a proxy /.proofline/readyz.`,
		Example: `  proofline health
  proofline health http://127.0.0.1:8081/.proofline/readyz`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			address := "http://127.0.0.1:" + port(t.Env("PROOFLINE_ADDR")) + "/readyz"
			if len(args) > 0 {
				address = args[0]
			}
			if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return cli.Usage(fmt.Errorf("%.200q is not an http URL", address),
					"give a URL such as http://127.0.0.1:8080/readyz")
			}
			r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, address, nil)
			if err != nil {
				return err
			}
			return check(t, &http.Client{Timeout: limit}, r)
		}),
	}
	c.Flags().DurationVar(&limit, "timeout", 5*time.Second, "maximum time until the response")
	return c
}

// port returns the port that a server listens on by its --addr.
func port(addr string) string {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		return port
	}
	return "8080"
}

// maxBody is the part of a response, in bytes, that is printed.
const maxBody = 1 << 10

func check(t *cli.Terminal, client *http.Client, r *http.Request) error {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r) //nolint:gosec // the user names the URL
	if err != nil {
		return cli.Unreachable(errors.Unwrap(err), "nothing answers at "+r.URL.Redacted()+": is it running?")
	}
	defer func() { _ = response.Body.Close() }() // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return cli.Unreachable(err, "")
	}
	text := cli.Printable(string(bytes.TrimSpace(body)))
	if response.StatusCode/100 != 2 {
		return cli.Failed(fmt.Errorf("%s: %s", response.Status, text), "")
	}
	return t.Printf("%s\n", text)
}
