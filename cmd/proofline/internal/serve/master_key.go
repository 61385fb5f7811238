package serve

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/room/keys"
)

// MasterKeyCommand returns "proofline master-key".
func MasterKeyCommand(t *cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "master-key [FILE]",
		Short: "Make the key that encrypts the rooms' keys in a database",
		Long: `Make a random master key. It is written to a new file that only you may read, or
printed if no file is given. Keep a copy in a safe place: without it a server
cannot open the rooms of its database.`,
		Example: `  proofline master-key /etc/proofline/master-key
  PROOFLINE_MASTER_KEY=$(proofline master-key)`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.Runs(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return t.Printf("%s\n", keys.NewMasterKey())
			}
			err := secret.Create(args[0], keys.NewMasterKey())
			if errors.Is(err, fs.ErrExist) {
				return cli.Failed(err, "replacing a key would lose it, and the rooms with it: choose another file")
			}
			return err
		}),
	}
}
