package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/source"
)

func fetchCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "fetch URL DIR",
		Short: "Store a transcript in a directory, to audit it offline",
		Long: `Store a transcript in a directory, under the same paths as published, so that
any tlog-tiles reader can use the copy. Run it again to resume, or to add newer
entries. Files that do not match the checkpoint are fetched again.

Exit code 0: stored, and the entries match the checkpoint; 1: they do not match,
even when fetched again; 3: could not be read.`,
		Example: `  proofline-verify fetch https://example.com/r/sale ./sale
  proofline-verify audit ./sale`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return fetch(c.Context(), t, args[0], args[1]) },
	}
}

func fetch(ctx context.Context, t *terminal, from, dir string) error {
	src, err := open(from)
	if err != nil {
		return err
	}
	bar := t.bar("tiles")
	head, err := source.Store(ctx, src, dir, bar.show)
	bar.clear()
	if errors.Is(err, source.ErrOtherLog) {
		return &exit{exitUnreadable, err, "the stored transcript may be evidence: use another directory"}
	}
	if errors.Is(err, source.ErrMismatch) {
		return &exit{exitFailed, err, "fetch into an empty directory and audit that: the audit shows what is wrong"}
	}
	if err != nil {
		return unreadable(err)
	}
	_, err = fmt.Fprintf(t.out, "stored %s of %s in %s\ncheck it with: proofline-verify audit %s\n",
		numeral.Count(head.Size, "entry", "entries"), printable(head.Origin), dir, dir)
	if err != nil {
		return unreadable(err)
	}
	return nil
}

func versionCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := fmt.Fprintln(t.out, "proofline-verify", version()); err != nil {
				return unreadable(err)
			}
			return nil
		},
	}
}

// version returns the program's version as Go recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}
