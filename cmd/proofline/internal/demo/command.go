package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

const verifierName = "proofline-verify"

// attackVisitors is the number of people with --bots.
const attackVisitors = 10_000

// Command returns "proofline demo".
func Command(t *cli.Terminal) *cobra.Command {
	var o Options
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a whole sale, audit it, and try to forge it",
		Long: `Run a whole sale on this machine in less than a minute: a server with its own
PostgreSQL, a shop behind the real proxy, visitors who join, wait and claim over
HTTP, and the standalone verifier, which checks the published transcript and
finds a forgery.

With --bots it rehearses an attack instead, in about two minutes: one script asks
for a tenth as many tickets as there are people, from one /24, from one /48, and
from a thousand networks: with an open door, with one that needs work, with one that
needs an account of an issuer, of which the script has ten, and with one that needs a
code, of which people sell the script one in twenty.

It exits with 0 only if everything was as expected.`,
		Example: `  proofline demo
  proofline demo --visitors 10000
  proofline demo --bots
  proofline demo --keep
  proofline demo --shop`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error { return runDemo(c, t, o) }),
	}
	flags := c.Flags()
	flags.IntVar(&o.Visitors, "visitors", 2000, "send `N` visitors")
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:0", "let the server listen on `HOST:PORT`")
	flags.StringVar(&o.Data, "data", "", "keep the data in `DIR` (default: a temporary directory)")
	flags.BoolVar(&o.Shop, "shop", false, "open the shop for a browser until Ctrl-C, instead of the sale")
	flags.BoolVar(&o.Bots, "bots", false,
		"let a script ask for many tickets, with an open door and others (default 10000 visitors)")
	flags.BoolVar(&o.Keep, "keep", false, "keep the data, and the server running until Ctrl-C")
	c.MarkFlagsMutuallyExclusive("shop", "visitors")
	c.MarkFlagsMutuallyExclusive("shop", "keep")
	c.MarkFlagsMutuallyExclusive("shop", "bots")
	return c
}

func runDemo(c *cobra.Command, t *cli.Terminal, o Options) (err error) {
	if o.Bots && !c.Flags().Changed("visitors") {
		o.Visitors = attackVisitors
	}
	if o.Visitors < MinVisitors || o.Visitors > MaxVisitors {
		return cli.Usage(fmt.Errorf("--visitors must be between %d and %d", MinVisitors, MaxVisitors),
			"for a larger crowd use proofline load")
	}
	if o.Verifier, err = findVerifier(); err != nil {
		return err
	}
	if o.Program, err = os.Executable(); err != nil {
		return cli.Failed(err, "")
	}
	o.ProxyLog = t.Err
	level := "warn"
	if o.Bots {
		level = "error" // the server warns of limits that are reached, as they should be
	}
	if o.Log, err = t.Logger("text", level); err != nil {
		return err
	}
	o.Narrator = NewNarrator(t.Out, t.Interactive(t.Out))
	err = Run(c.Context(), o)
	switch {
	case err == nil:
		return nil
	case c.Context().Err() != nil:
		return cli.Failed(errors.New("interrupted before the end"), "")
	case errors.Is(err, ErrFailed):
		return cli.Failed(err, "")
	}
	return server.Explain(err)
}

// findVerifier finds the standalone verifier next to this program or in PATH.
func findVerifier() (string, error) {
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			if sibling, err := exec.LookPath(filepath.Join(filepath.Dir(self), verifierName)); err == nil {
				return sibling, nil
			}
		}
	}
	found, err := exec.LookPath(verifierName)
	if err != nil {
		return "", cli.Failed(fmt.Errorf("proofline-verify is missing: %w", err), "build both programs: make build")
	}
	return found, nil
}
