package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
)

// version is set by the linker; empty: use the version that Go recorded.
var version string

func versionCommand(t *cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: cli.Runs(func(*cobra.Command, []string) error {
			return t.Printf("proofline %s %s\n", t.Version, runtime.Version())
		}),
	}
}

func versionText() string {
	recorded := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		recorded = info.Main.Version
	}
	return cmp.Or(version, recorded, "unknown")
}
