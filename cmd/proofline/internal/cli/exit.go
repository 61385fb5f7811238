package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
)

// Exit is an error with the exit code of the program.
type Exit struct {
	code int
	err  error  // nil: nothing to print
	hint string // what to do about it, on one line; may be empty
}

// Error implements error.
func (e *Exit) Error() string { return fmt.Sprint(e.err) }

// Unwrap returns the error without exit code and hint.
func (e *Exit) Unwrap() error { return e.err }

// Failed returns an error with [ExitFailed].
func Failed(err error, hint string) *Exit { return &Exit{ExitFailed, err, hint} }

// Usage returns an error with [ExitUsage].
func Usage(err error, hint string) *Exit { return &Exit{ExitUsage, err, hint} }

// Unreachable returns an error with [ExitUnreachable].
func Unreachable(err error, hint string) *Exit { return &Exit{ExitUnreachable, err, hint} }

// Runs returns a RunE that turns errors of work into failures. Cobra checks flags and arguments
// before that; its errors are wrong usage.
func Runs(work func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := work(c, args)
		if known := (*Exit)(nil); err == nil || errors.As(err, &known) {
			return err
		}
		return Failed(err, "")
	}
}

// CommandMissing is the RunE of a command that only has subcommands.
func CommandMissing(c *cobra.Command, _ []string) error {
	if !c.HasParent() {
		return errors.New("a command is missing")
	}
	return errors.New("a command is missing after " + c.Name())
}

// ExitCode prints a command's error, if there is one, and returns the exit code.
func (t *Terminal) ExitCode(err error, command string) int {
	if err == nil {
		return ExitOK
	}
	known := (*Exit)(nil)
	if !errors.As(err, &known) {
		known = Usage(err, "run "+command+" --help")
	}
	if known.err != nil {
		t.printError(known)
	}
	return known.code
}

// printError prints an error and its hint. The error may quote a server.
func (t *Terminal) printError(e *Exit) {
	lines := strings.Split("proofline: "+e.err.Error(), "\n")
	for _, line := range lines {
		_, _ = fmt.Fprintln(t.Err, Printable(line))
	}
	if e.hint != "" {
		_, _ = fmt.Fprintf(t.Err, "hint: %s\n", e.hint)
	}
}
