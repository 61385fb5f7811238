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

// exit is an error that ends the program.
type exit struct {
	code int
	err  error  // nil if everything is said
	hint string // what to do about it, in one line; may be empty
}

func (e *exit) Error() string { return fmt.Sprint(e.err) }

func (e *exit) Unwrap() error { return e.err }

func failed(err error, hint string) *exit { return &exit{exitFailed, err, hint} }

func usage(err error, hint string) *exit { return &exit{exitUsage, err, hint} }

// runs is a command's RunE. An error of its own work is a failure; errors
// that cobra makes before, about flags and arguments, are wrong usage.
func runs(work func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := work(c, args)
		if known := (*exit)(nil); err == nil || errors.As(err, &known) {
			return err
		}
		return failed(err, "")
	}
}

// exitCode says why the program ends, if a command was not done.
func (t *terminal) exitCode(err error, command string) int {
	if err == nil {
		return exitOK
	}
	known := (*exit)(nil)
	if !errors.As(err, &known) {
		known = usage(err, "run "+command+" --help")
	}
	if known.err != nil {
		t.complain(known)
	}
	return known.code
}

// complain prints an error, which may quote a server. Nothing can be done if
// that fails.
func (t *terminal) complain(e *exit) {
	lines := strings.Split("proofline: "+e.err.Error(), "\n")
	for _, line := range lines {
		_, _ = fmt.Fprintln(t.err, printable(line))
	}
	if e.hint != "" {
		_, _ = fmt.Fprintf(t.err, "hint: %s\n", e.hint)
	}
}
