// Command proofline runs a server of waiting rooms, manages the rooms of a running
// server, protects a site as a reverse proxy, and has tools to try things out: a
// demo, a load generator, a simulator and a local beacon.
//
//	proofline serve
//	proofline room create sale.json
//	proofline demo
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 server or database unreachable.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "proofline: second signal, exiting at once")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// run runs a command line and returns the exit code. When ctx ends it stops the
// command gracefully.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	t := &terminal{in: stdin, out: stdout, err: stderr, env: env}
	root := &cobra.Command{
		Use:   "proofline",
		Short: "A virtual waiting room that can prove it was fair",
		Long: `Proofline runs waiting rooms whose order anyone can check: every arrival, draw,
place, call and admission is an entry in a public, signed transcript.`,
		Example: `  proofline demo                      watch a whole sale and its audit
  proofline serve                     run a server on this machine
  proofline room create sale.json     create a room on it`,
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return errors.New("a command is missing") },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		serveCommand(t), recoverCommand(t), roomCommand(t), organizationCommand(t), tokenCommand(t), accountCommand(t),
		clockCommand(t), siteCommand(t), connectorCommand(t), proxyCommand(t), demoCommand(t), loadCommand(t),
		simulateCommand(t), beaconCommand(t), masterKeyCommand(t), versionCommand(t),
	)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	return t.exitCode(err, command.CommandPath())
}
