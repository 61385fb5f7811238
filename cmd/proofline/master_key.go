package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/room"
)

func masterKeyCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "master-key [FILE]",
		Short: "Make a key that seals the rooms' keys in a database",
		Long: `Make a random master key and write it to a new file that only you may read, or
print it without a file. Keep a copy in a safe place: without it the rooms of a
database cannot go on.`,
		Example: `  proofline master-key /etc/proofline/master-key
  PROOFLINE_MASTER_KEY=$(proofline master-key)`,
		Args: cobra.MaximumNArgs(1),
		RunE: runs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return t.printf("%s\n", room.NewMasterKey())
			}
			err := secret.Create(args[0], room.NewMasterKey())
			if errors.Is(err, fs.ErrExist) {
				return failed(err, "a key that is replaced is lost, and the rooms with it: choose another file")
			}
			return err
		}),
	}
}
