package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// exit is an error with the exit code of the program.
type exit struct {
	code int
	err  error  // nil: nothing to print
	hint string // what to do about it, on one line; may be empty
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }

func (e *exit) Unwrap() error { return e.err }

func failed(err error, hint string) *exit { return &exit{exitFailed, err, hint} }

func usage(err error, hint string) *exit { return &exit{exitUsage, err, hint} }

// runs returns a RunE that turns errors of work into failures. Cobra's own errors,
// about flags and arguments, come earlier and are wrong usage.
func runs(work func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := work(c, args)
		if known := (*exit)(nil); err == nil || errors.As(err, &known) {
			return err
		}
		return failed(err, "")
	}
}

// exitCode prints a command's error, if there is one, and returns the exit code.
func (t *terminal) exitCode(err error, command string) int {
	if err == nil {
		return exitOK
	}
	known := (*exit)(nil)
	if !errors.As(err, &known) {
		known = usage(err, "run "+command+" --help")
	}
	if known.err != nil {
		t.printError(known)
	}
	return known.code
}

// printError prints an error and its hint. The error may quote a server.
func (t *terminal) printError(e *exit) {
	lines := strings.Split("proofline: "+e.err.Error(), "\n")
	for _, line := range lines {
		_, _ = fmt.Fprintln(t.err, printable(line))
	}
	if e.hint != "" {
		_, _ = fmt.Fprintf(t.err, "hint: %s\n", e.hint)
	}
}
