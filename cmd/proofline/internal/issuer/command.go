// Package issuer implements "proofline issuer", which runs an issuer of credentials: of the organization that runs
// the rooms, with a key of its own, or of another one.
package issuer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/verifier/source"
)

// Command returns "proofline issuer".
func Command(t *cli.Terminal) *cobra.Command {
	c := &cobra.Command{
		Use:   "issuer",
		Short: "Vouch for visitors of rooms: codes, members, addresses or accounts",
		Long: `Run an issuer of credentials. It confirms to rooms that a visitor has a code, a
membership, an address or an account, with a key of its own that the room's
policy names. It needs no access to the room and may belong to another
organization. web/issuer/README.md explains its settings.`,
		Example: `  proofline issuer codes --list early --count 500 --out codes.csv --sheet codes.html
  proofline issuer methods --config issuer.yaml
  proofline issuer serve --config issuer.yaml`,
		Args: cobra.NoArgs,
		RunE: cli.CommandMissing,
	}
	c.AddCommand(serveCommand(t), methodsCommand(t), codesCommand(t), membersCommand(t), roomCommand(t))
	return c
}

// files is an issuer's directory.
type files struct{ dir string }

func (f *files) add(flags *pflag.FlagSet, t *cli.Terminal) {
	flags.StringVar(&f.dir, "data", filepath.Join(t.DataDir(), "issuer"),
		"`DIR` of the issuer's secret, lists and records, created if it does not exist")
}

// secret returns the issuer's secret, which it creates at the first call.
func (f *files) secret() ([]byte, error) {
	if err := os.MkdirAll(filepath.Join(f.dir, "lists"), 0o700); err != nil {
		return nil, cli.Failed(err, "choose another directory with --data")
	}
	text, err := f.ensure("secret", func() (string, error) {
		b := make([]byte, issuer.SecretSize)
		_, _ = rand.Read(b) // never fails
		return hex.EncodeToString(b), nil
	})
	if err != nil {
		return nil, err
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != issuer.SecretSize {
		return nil, cli.Failed(fmt.Errorf("%s is not an issuer's secret", filepath.Join(f.dir, "secret")),
			"choose another directory with --data")
	}
	return b, nil
}

// blindKey returns the key for the blind signatures of an offer, which it creates at the first call.
func (f *files) blindKey(offer string) (*rsa.PrivateKey, error) {
	name := "blind-" + offer + ".pem"
	text, err := f.ensure(name, func() (string, error) {
		key, err := rsa.GenerateKey(rand.Reader, issuer.ModulusBits)
		if err != nil {
			return "", err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
	})
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, cli.Failed(fmt.Errorf("%s has no RSA key", filepath.Join(f.dir, name)), "")
}

func (f *files) ensure(name string, create func() (string, error)) (string, error) {
	path := filepath.Join(f.dir, name)
	text, err := secret.Ensure(path, create)
	if errors.Is(err, secret.ErrExposed) {
		return "", cli.Failed(err, "restrict it to its owner: chmod 600 "+path)
	}
	if err != nil {
		return "", cli.Failed(err, "")
	}
	return text, nil
}

func (f *files) listPath(name string) string { return filepath.Join(f.dir, "lists", name+".list") }

// list reads a list. It returns [fs.ErrNotExist] if there is none.
func (f *files) list(i *issuer.Issuer, name string) (*issuer.List, error) {
	if !isName(name) {
		return nil, cli.Usage(fmt.Errorf("%.40q is not the name of a list", name), "use a-z, 0-9 and -")
	}
	text, err := os.ReadFile(f.listPath(name)) //nolint:gosec // the operator names it
	if err != nil {
		return nil, err
	}
	return i.ReadList(name, bytes.NewReader(text))
}

// writeList replaces a list, whole or not at all.
func (f *files) writeList(name string, l *issuer.List) error {
	temp, err := os.CreateTemp(filepath.Join(f.dir, "lists"), ".list-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = l.WriteTo(temp)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.listPath(name))
}

func isName(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func methodsCommand(t *cli.Terminal) *cobra.Command {
	var f files
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
			i, err := f.issuer(nil)
			if err != nil {
				return err
			}
			for _, o := range cfg.Offers {
				offer, err := o.offer(&f)
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
	f.add(c.Flags(), t)
	addConfig(c.Flags(), &path)
	return c
}

// issuer returns the issuer of the directory. store may be nil: then it cannot issue.
func (f *files) issuer(store *issuer.Store) (*issuer.Issuer, error) {
	s, err := f.secret()
	if err != nil {
		return nil, err
	}
	return issuer.New(s, store)
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
	checkpoint, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitN(string(checkpoint), "\n", 3)
	size, err := strconv.ParseUint(lines[min(1, len(lines)-1)], 10, 63)
	if err != nil || size == 0 {
		return nil, fmt.Errorf("%s is not a checkpoint", url)
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

// missing reports whether an error is that of a file that does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
