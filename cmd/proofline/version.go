package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker; empty: use the version that Go recorded.
var version string

func versionCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: runs(func(*cobra.Command, []string) error {
			return t.printf("proofline %s %s\n", versionText(), runtime.Version())
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
