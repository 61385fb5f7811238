package issuer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/codefile"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/fairness/credential/issuer"
	web "github.com/proofline/proofline/web/issuer"
)

// codesFlags are the flags of issuer codes.
type codesFlags struct {
	dir issuerdir.Dir
	codefile.Files
	list, people string
	count        int
}

// maxCodes is the maximum number of codes made at once.
const maxCodes = 1_000_000

func codesCommand(t *cli.Terminal) *cobra.Command {
	var f codesFlags
	c := &cobra.Command{
		Use:   "codes",
		Short: "Make one-time codes and add them to a list",
		Long: `Make one-time codes, write them to a CSV file, and add their keyed hashes to a list.
With --people, each row of another CSV file gets a code in a new column. The issuer
keeps the hashes alone: the CSV file is the only copy of the codes.`,
		Example: `  proofline issuer codes --list early --count 500 --out codes.csv --sheet codes.html
  proofline issuer codes --list press --people journalists.csv --out codes.csv`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(*cobra.Command, []string) error { return f.run(t) }),
	}
	flags := c.Flags()
	addData(flags, &f.dir, t)
	flags.StringVar(&f.list, "list", "", "`NAME` of the list, which is made if it does not exist (required)")
	flags.IntVar(&f.count, "count", 0, "make `N` codes")
	flags.StringVar(&f.people, "people", "", "make a code for each row of this CSV `FILE`, whose first row has names of columns")
	f.Files.Add(flags)
	flags.StringVar(&f.On.Address, "address", "", "`URL` of the room, for the sheet, with its QR code")
	return c
}

func (f *codesFlags) run(t *cli.Terminal) error {
	if f.list == "" || f.Out == "" || (f.people == "") == (f.count == 0) || f.count < 0 || f.count > maxCodes {
		return cli.Usage(errors.New("--list, --out, and one of --count and --people are required"),
			"run proofline issuer codes --help")
	}
	if err := f.Check(); err != nil {
		return err
	}
	rows, err := f.rows()
	if err != nil {
		return err
	}
	i, err := f.dir.Issuer(nil)
	if err != nil {
		return err
	}
	// Codes that are listed and not written harm no one; the other way around would.
	codes, total, err := f.dir.AddCodes(i, f.list, len(rows)-1)
	if errors.Is(err, issuerdir.ErrMembers) {
		return cli.Usage(fmt.Errorf("the list %s has members", f.list), "choose another name with --list")
	}
	if err != nil {
		return err
	}
	for n, code := range codes {
		rows[n+1] = append(rows[n+1], code)
	}
	if err := f.Write(rows, codes); err != nil {
		return err
	}
	return t.Printf("%d codes written to %s; the list %s has %d\n", len(codes), f.Out, f.list, total)
}

// rows returns the rows that get codes, after one with the names of columns.
func (f *codesFlags) rows() ([][]string, error) {
	if f.people == "" {
		return append([][]string{{"code"}}, make([][]string, f.count)...), nil
	}
	rows, err := readCSV(f.people)
	if err != nil {
		return nil, err
	}
	if slices.Contains(rows[0], "code") {
		return nil, cli.Usage(fmt.Errorf("%s has a column named code already", f.people), "remove it, or rename it")
	}
	if len(rows) > maxCodes {
		return nil, cli.Usage(fmt.Errorf("%s has more than %d rows", f.people, maxCodes), "split it")
	}
	rows[0] = append(rows[0], "code")
	return rows, nil
}

// readCSV reads a file with a row of names and at least one other.
func readCSV(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usage(err, "")
	}
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))).ReadAll()
	if err == nil && len(rows) < 2 {
		err = errors.New("want a row with the names of columns, and one for each person")
	}
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", path, err), "save it as CSV with commas, in UTF-8")
	}
	return rows, nil
}

func voidCommand(t *cli.Terminal) *cobra.Command {
	var dir issuerdir.Dir
	var config, name, path string
	var batch int
	var check bool
	c := &cobra.Command{
		Use:   "void",
		Short: "Void codes that leaked, before they are used",
		Long: `Void codes of a list, in all offers of the configuration that use it: they are
refused from now on, and visitors who enter one are told so. This cannot be undone. Codes
that were used already keep what they confirmed. Stop the issuer for as long as
this takes: only one program at a time can write its records.

Without --from and --batch, print the batches of the list, and what became of them.`,
		Example: `  proofline issuer void --config issuer.yaml --list early
  proofline issuer void --config issuer.yaml --list early --from leaked.csv --check
  proofline issuer void --config issuer.yaml --list early --batch 2`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(*cobra.Command, []string) error {
			if name == "" || path != "" && batch != 0 || batch < 0 {
				return cli.Usage(errors.New("--list is required, and --from or --batch"),
					"run proofline issuer void --help")
			}
			cfg, err := readConfig(config)
			if err != nil {
				return err
			}
			var codes []string
			if path != "" {
				text, err := os.ReadFile(path)
				if err != nil {
					return cli.Usage(err, "")
				}
				if codes, err = codefile.Read(path, string(text)); err != nil {
					return err
				}
			}
			return cfg.voidCodes(t, dir, name, codes, batch, check)
		}),
	}
	flags := c.Flags()
	addData(flags, &dir, t)
	addConfig(flags, &config)
	flags.StringVar(&name, "list", "", "`NAME` of the list (required)")
	flags.StringVar(&path, "from", "", "`FILE` of codes, one a line or a CSV file with a column called code")
	flags.IntVar(&batch, "batch", 0, "all codes of batch `N`")
	flags.BoolVar(&check, "check", false, "only count the codes, and change nothing")
	return c
}

// voidCodes voids codes of a list in all offers that use it, or shows the batches if none are named.
func (c *config) voidCodes(t *cli.Terminal, dir issuerdir.Dir, name string, codes []string, batch int,
	check bool) error {
	store, err := issuer.OpenStore(string(dir))
	if errors.Is(err, issuer.ErrLocked) {
		return cli.Failed(err, "stop the issuer, void the codes, and start it again")
	}
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	i, err := dir.Issuer(store)
	if err != nil {
		return err
	}
	list, err := dir.List(i, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !list.IsCodes {
		return cli.Usage(fmt.Errorf("there are no codes in a list %s", name), "name a list of codes with --list")
	}
	if err != nil {
		return err
	}
	accounts, unknown := list.Accounts(codes)
	if batch > 0 {
		if accounts = list.Batch(batch); len(accounts) == 0 {
			return cli.Usage(fmt.Errorf("the list %s has no batch %d", name, batch),
				"proofline issuer void --list "+name+" numbers them")
		}
	}
	offers, err := c.offersOf(dir, name)
	if err != nil {
		return err
	}
	for _, offer := range offers {
		if batch == 0 && codes == nil {
			if err := showBatches(t, i, offer, list); err != nil {
				return err
			}
			continue
		}
		v, err := i.Void(offer, accounts, check)
		if err != nil {
			return err
		}
		text := codefile.Voided(v.Unused, v.Used, v.Void, unknown, check)
		if err := t.Printf("offer %s: %s", offer.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// offersOf returns the offers that use a list of codes.
func (c *config) offersOf(dir issuerdir.Dir, list string) (offers []*issuer.Offer, err error) {
	for _, of := range c.Offers {
		if of.Proof != web.ByList || of.List != list {
			continue
		}
		if of.Entry == "" {
			return nil, cli.Usage(fmt.Errorf("offer %s: the room's entry is missing", of.Name),
				"take it from the room: proofline issuer room URL")
		}
		offer, err := of.offer(dir)
		if err != nil {
			return nil, err
		}
		offer.Once = true
		offers = append(offers, offer)
	}
	if len(offers) == 0 {
		return nil, cli.Usage(fmt.Errorf("no offer uses the list %s", list),
			"name a list of the configuration with --list")
	}
	return offers, nil
}

func showBatches(t *cli.Terminal, i *issuer.Issuer, offer *issuer.Offer, list *issuer.List) error {
	batches, err := i.Batches(offer, list)
	if err != nil {
		return err
	}
	for n, b := range batches {
		if err := t.Printf("offer %s: batch %d of %s has %d codes: %d used, %d void\n", offer.Name, n+1,
			time.UnixMilli(b.Millis).UTC().Format(time.RFC3339), b.Unused+b.Used+b.Void, b.Used, b.Void); err != nil {
			return err
		}
	}
	return nil
}

func membersCommand(t *cli.Terminal) *cobra.Command {
	var dir issuerdir.Dir
	var name, path string
	c := &cobra.Command{
		Use:   "members",
		Short: "Make a list of members from a CSV file",
		Long: `Make a list of members from a CSV file, in place of an earlier list of that name.
The columns, at most four, are what members type in; the first row has their names. For the
proofs mail and oidc the list has one column, of addresses. The issuer keeps keyed
hashes alone.`,
		Example: "  proofline issuer members --list fans --from members.csv",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(*cobra.Command, []string) error {
			if name == "" || path == "" {
				return cli.Usage(errors.New("--list and --from are required"), "run proofline issuer members --help")
			}
			return members(t, dir, name, path)
		}),
	}
	addData(c.Flags(), &dir, t)
	c.Flags().StringVar(&name, "list", "", "`NAME` of the list (required)")
	c.Flags().StringVar(&path, "from", "", "CSV `FILE` of members (required)")
	return c
}

func members(t *cli.Terminal, dir issuerdir.Dir, name, path string) error {
	rows, err := readCSV(path)
	if err != nil {
		return err
	}
	i, err := dir.Issuer(nil)
	if err != nil {
		return err
	}
	m, err := dir.SetMembers(i, name, rows[0], rows[1:], false)
	switch {
	case errors.Is(err, issuerdir.ErrCodes):
		return cli.Usage(fmt.Errorf("the list %s has codes", name), "choose another name with --list")
	case errors.Is(err, issuer.ErrList):
		return cli.Usage(fmt.Errorf("%s: %w", path, err), "give 1 to 4 columns with different names, without commas")
	case err != nil:
		return err
	}
	for _, n := range m.LeftOut {
		t.Warn(fmt.Sprintf("row %d is empty, or a member again: it is left out", n+1))
	}
	return t.Printf("the list %s has %d members\n", name, m.Count)
}
