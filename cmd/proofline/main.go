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
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/account"
	"github.com/proofline/proofline/cmd/proofline/internal/beacon"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/demo"
	"github.com/proofline/proofline/cmd/proofline/internal/doctor"
	"github.com/proofline/proofline/cmd/proofline/internal/health"
	"github.com/proofline/proofline/cmd/proofline/internal/issuer"
	"github.com/proofline/proofline/cmd/proofline/internal/load"
	"github.com/proofline/proofline/cmd/proofline/internal/proxy"
	"github.com/proofline/proofline/cmd/proofline/internal/room"
	"github.com/proofline/proofline/cmd/proofline/internal/serve"
	"github.com/proofline/proofline/cmd/proofline/internal/simulate"
	"github.com/proofline/proofline/cmd/proofline/internal/site"
	"github.com/proofline/proofline/internal/args"
	"github.com/proofline/proofline/internal/manual"
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
		os.Exit(cli.ExitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// run runs a command line and returns the exit code. When ctx ends it stops the
// command gracefully.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	t := &cli.Terminal{In: stdin, Out: stdout, Err: stderr, Env: env, Version: versionText()}
	root := rootCommand(t)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	return t.ExitCode(err, command.CommandPath())
}

func rootCommand(t *cli.Terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "proofline",
		Short: "A virtual waiting room that can prove it was fair",
		Long: `Proofline runs waiting rooms whose order anyone can check: every arrival, draw,
place, call and admission is an entry in a public, signed transcript.`,
		Example: `  proofline demo                      watch a whole sale and its audit
  proofline serve                     run a server on this machine
  proofline room create sale.json     create a room on it`,
		Args:          cobra.NoArgs,
		RunE:          cli.CommandMissing,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		serve.Command(t), serve.RecoverCommand(t), serve.ForgetCommand(t), serve.ExportCommand(t),
		serve.ImportCommand(t), serve.OffloadCommand(t), room.Command(t), account.OrganizationCommand(t),
		account.TokenCommand(t), account.Command(t), account.ClockCommand(t), site.Command(t), site.ConnectorCommand(t),
		proxy.Command(t), demo.Command(t), doctor.Command(t), load.Command(t), simulate.Command(t), beacon.Command(t),
		issuer.Command(t), serve.MasterKeyCommand(t), health.Command(t), versionCommand(t),
		manual.Program{
			Exit:    []string{"Done.", "Failed.", "Wrong usage.", "The server or the database cannot be reached."},
			Replace: strings.NewReplacer(t.DataDir(), "/var/lib/proofline"),
		}.Command(),
	)
	args.Name(root)
	return root
}
