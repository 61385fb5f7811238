// Package issuer implements "proofline issuer", which runs an issuer of credentials: of the organization that runs
// the rooms, with a key of its own, or of another one.
package issuer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// Command returns "proofline issuer".
func Command(t *cli.Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:   "issuer",
		Short: "Vouch for visitors of rooms: codes, members, addresses, accounts or puzzles",
		Long: `Run an issuer of credentials. It confirms to rooms that a visitor has a code, a
membership, an address or an account, or has solved a small puzzle or a CAPTCHA,
with a key of its own that the room's policy names. It needs no access to the room
and may belong to another organization. web/issuer/README.md explains its settings.`,
		Example: `  proofline issuer codes --list early --count 500 --out codes.csv --sheet codes.html
  proofline issuer methods --config issuer.yaml
  proofline issuer serve --config issuer.yaml`,
		Args: cobra.NoArgs,
		RunE: cli.CommandMissing,
	}
	c.AddCommand(serveCommand(t), methodsCommand(t), codesCommand(t), voidCommand(t), membersCommand(t), roomCommand(t),
		checkCommand(t))
	return c
}

// addData adds the flag of an issuer's directory.
func addData(flags *pflag.FlagSet, dir *issuerdir.Dir, t *cli.Terminal) {
	flags.StringVar((*string)(dir), "data", filepath.Join(t.DataDir(), "issuer"),
		"`DIR` of the issuer's secret, lists and records, created if it does not exist")
}

func isName(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func methodsCommand(t *cli.Terminal) *cobra.Command {
	var dir issuerdir.Dir
	var path string
	c := &cobra.Command{
		Use:   "methods",
		Short: "Print the lines that rooms' policies have for the offers",
		Long: `Print, for each offer of the configuration, the line that the room's policy must
have, and the key that verifies the signed count at /issued. Keys that do not
exist yet are created. The room's entry need not be known yet.`,
		Example: "  proofline issuer methods --config issuer.yaml",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(*cobra.Command, []string) error {
			cfg, err := readConfig(path)
			if err != nil {
				return err
			}
			i, err := dir.Issuer(nil)
			if err != nil {
				return err
			}
			for _, o := range cfg.Offers {
				offer, err := o.offer(dir)
				if err != nil {
					return err
				}
				if err := t.Printf("method %s\n", i.Method(offer).AppendText(nil)); err != nil {
					return err
				}
			}
			key, err := i.VerifierKey(cfg.url.Host)
			if err != nil {
				return err
			}
			return t.Printf("issued %s\n", key)
		}),
	}
	addData(c.Flags(), &dir, t)
	addConfig(c.Flags(), &path)
	return c
}

func roomCommand(t *cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "room URL",
		Short: "Print a room's first entry and its hash, for the configuration",
		Long: `Download the first entry of the room at a URL, which is its policy, and print its
SHA-256 and its text. Check that the method and its limit are what you agreed on.`,
		Example: "  proofline issuer room https://queue.example.com/r/derby",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			entry, err := firstEntry(c.Context(), args[0])
			if err != nil {
				return cli.Unreachable(err, "give the address of the room")
			}
			return t.Printf("entry %x\n\n%s\n", sha256.Sum256(entry), entry)
		}),
	}
}

// firstEntry downloads the first entry of a log. The signature of the checkpoint is not checked: the operator
// compares the entry with what was agreed on.
func firstEntry(ctx context.Context, url string) (first []byte, err error) {
	src, err := source.HTTP(url, nil)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(ctx, src, url)
	if err != nil {
		return nil, err
	}
	errDone := errors.New("done")
	err = transcript.Each(ctx, src, min(size, audit.TileWidth), func(entry []byte) error {
		first = bytes.Clone(entry)
		return errDone
	})
	if errors.Is(err, errDone) {
		err = nil
	}
	return first, err
}

// sizeOf returns the number of entries in the checkpoint of a log, whose signature is not checked.
func sizeOf(ctx context.Context, src verifier.Source, url string) (uint64, error) {
	checkpoint, err := src.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	lines := strings.SplitN(string(checkpoint), "\n", 3)
	size, err := strconv.ParseUint(lines[min(1, len(lines)-1)], 10, 63)
	if err != nil || size == 0 {
		return 0, fmt.Errorf("%s is not a checkpoint", url)
	}
	return size, nil
}
