// Command proofline-verify audits a Proofline room from its published transcript: it recomputes
// every draw, place, call and admission, and prints numbered checks and what they do not prove.
//
//	proofline-verify audit https://example.com/r/sale
//	proofline-verify fetch https://example.com/r/sale ./sale
//	proofline-verify audit ./sale --json
//	proofline-verify audit ./sale --html report.html
//	proofline-verify rooms https://example.com
//	proofline-verify watch https://example.com/r/sale
//	proofline-verify compare mine.json hers.json --source https://example.com/r/sale
//	proofline-verify evidence evidence-fork-4711.json
//	proofline-verify dossier https://example.com/r/sale sale.zip
//	proofline-verify witness --name example.org/witness --log https://example.com/r/sale
//
// Exit codes: 0 verified, 1 a check failed, 2 wrong usage, 3 could not read.
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

	arguments "github.com/proofline/proofline/internal/args"
	"github.com/proofline/proofline/internal/heap"
	"github.com/proofline/proofline/internal/manual"
)

// Exit codes.
const (
	exitVerified   = 0
	exitFailed     = 1
	exitUsage      = 2
	exitUnreadable = 3
)

// garbage is the memory in bytes that garbage may take: large rooms are audited on small machines.
const garbage = 32 << 20

func main() {
	heap.Tune(garbage)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) string) int {
	root := &cobra.Command{
		Use:           "proofline-verify",
		Short:         "Audit a waiting room from its published transcript",
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return errors.New("no command given") },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	t := &terminal{stdout, stderr, env, isTerminal}
	root.AddCommand(auditCommand(t), fetchCommand(t), watchCommand(t), evidenceCommand(t), compareCommand(t),
		archiveCommand(t), ticketCommand(t), witnessCommand(t), statsCommand(t), roomsCommand(t), versionCommand(t),
		manual.Program{Exit: []string{"Verified.", "A check failed.", "Wrong usage.", "Could not read."}}.Command())
	arguments.Name(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var known *exit
	switch {
	case err == nil:
		return exitVerified
	case !errors.As(err, &known): // errors from cobra, about flags, arguments and commands
		known = usage(err, "run proofline-verify --help")
	}
	t.printError(known)
	return known.code
}

// exit is an error that ends the program.
type exit struct {
	code int
	err  error  // nil: already printed
	hint string // what the user can do, in one line
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }

func usage(err error, hint string) *exit { return &exit{exitUsage, err, hint} }
