// Command proofline runs waiting rooms, and speaks to a server that does.
//
//	proofline serve
//	proofline room create sale.json
//	proofline demo
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 could not reach the server or
// the database.
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
		fmt.Fprintln(os.Stderr, "proofline: second signal, leaving at once")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// run is the whole program, without its process. It stops in order when ctx
// ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	t := &terminal{in: stdin, out: stdout, err: stderr, env: env}
	root := &cobra.Command{
		Use:   "proofline",
		Short: "A virtual waiting room that can prove it was fair",
		Long: `Proofline runs waiting rooms whose order anyone can check: every arrival, draw,
place, call and admission is an entry of a public, signed transcript.`,
		Example: `  proofline demo                      see a whole sale, and its audit
  proofline serve                     run a server on this machine
  proofline room create sale.json     make a room on it`,
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return errors.New("a command is missing") },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serveCommand(t), recoverCommand(t), roomCommand(t), organizationCommand(t), tokenCommand(t), accountCommand(t), clockCommand(t), siteCommand(t), connectorCommand(t), proxyCommand(t), demoCommand(t), loadCommand(t), simulateCommand(t), beaconCommand(t), masterKeyCommand(t), versionCommand(t))
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	return t.exitCode(err, command.CommandPath())
}
