package room

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/codefile"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/codesheet"
	"github.com/proofline/proofline/internal/wire"
)

func codesCommand(m *remote.Manager) *cobra.Command {
	var files codefile.Files
	var count int
	c := &cobra.Command{
		Use:   "codes SLUG METHOD",
		Short: "Make codes that confirm visitors, or count them",
		Long: `Make codes for a method of a room whose key is "own": the server's own issuer
confirms a visitor who types one in, and takes each code once, for one place. The
server keeps keyed hashes: the CSV file is the only copy of the codes. The sheet has
the room's address with its QR code, and its opening time. Without --count, print
how many codes there are of each batch, and what became of them.`,
		Example: `  proofline room codes sale presale --count 500 --out codes.csv --sheet codes.html
  proofline room codes sale presale`,
		Args: cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			path := roomPath(args[0], "/methods/"+url.PathEscape(args[1])+"/codes")
			if !c.Flags().Changed("count") && files.Out == "" {
				return showCodes(m, c, path)
			}
			if files.Out == "" || count < 1 {
				return cli.Usage(errors.New("--out and --count are required"), "run proofline room codes --help")
			}
			if err := files.Check(); err != nil {
				return err
			}
			body, err := json.Marshal(wire.CodesInput{Count: count})
			if err != nil {
				return err
			}
			if files.Sheet != "" { // asked for first: codes are shown once
				if err := addRoom(m, c, args[0], &files.On); err != nil {
					return err
				}
			}
			var made wire.Codes
			if _, err := m.Ask(c, http.MethodPost, path, body, &made); err != nil {
				return err
			}
			rows := [][]string{{"code"}}
			for _, code := range made.Codes {
				rows = append(rows, []string{code})
			}
			if err := files.Write(rows, made.Codes); err != nil {
				return err
			}
			total := struct {
				Made  int `json:"made"`
				Total int `json:"total"`
			}{len(made.Codes), made.Total}
			return m.Print(total, func() error {
				return m.Printf("%d codes written to %s; %d were made for %s in all\n",
					total.Made, files.Out, total.Total, args[1])
			})
		}),
	}
	c.Flags().IntVar(&count, "count", 0, "make `N` codes, with --out")
	files.Add(c.Flags())
	return c
}

// addRoom adds to a sheet what it says of the room.
func addRoom(m *remote.Manager, c *cobra.Command, slug string, to *codesheet.Sheet) error {
	var of wire.Room
	if _, err := m.Ask(c, http.MethodGet, roomPath(slug, ""), nil, &of); err != nil {
		return err
	}
	to.Address = of.URL
	if of.Opens != nil {
		to.Opens = codesheet.Opens(*of.Opens, time.Now(), of.Zone())
	}
	return nil
}

// showCodes prints the batches of codes.
func showCodes(m *remote.Manager, c *cobra.Command, path string) error {
	var codes wire.CodeBatches
	raw, err := m.Ask(c, http.MethodGet, path, nil, &codes)
	if err != nil {
		return err
	}
	return m.Print(raw, func() error {
		if len(codes.Batches) == 0 {
			return m.Printf("no codes were made\n")
		}
		rows := [][]string{{"BATCH", "MADE", "CODES", "USED", "VOID"}}
		for i, b := range codes.Batches {
			rows = append(rows, []string{strconv.Itoa(i + 1), b.Made.UTC().Format(time.RFC3339),
				strconv.Itoa(b.Unused + b.Used + b.Void), strconv.Itoa(b.Used), strconv.Itoa(b.Void)})
		}
		return m.PrintTable(rows...)
	})
}

func voidCommand(m *remote.Manager) *cobra.Command {
	var in wire.VoidInput
	var path string
	c := &cobra.Command{
		Use:   "void SLUG METHOD",
		Short: "Void codes that leaked, before they are used",
		Long: `Void codes of a method of a room: they are refused from now on, and visitors who
enter one are told so. This cannot be undone. Codes that were used already keep what
they confirmed; proofline room revoke takes places away.

--list names the codes. They are not taken as arguments, which other users of the
machine can see. --batch voids all codes that were made at once; proofline room
codes numbers the batches.`,
		Example: `  proofline room void sale presale --list leaked.csv --check
  proofline room void sale presale --batch 2`,
		Args: cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) (err error) {
			if (path == "") == (in.Batch < 1) {
				return cli.Usage(errors.New("give either --list FILE or --batch N"), "run proofline room void --help")
			}
			if path != "" {
				text, err := m.ReadFile(path, maxListFile, "give a file with one code a line, or - for standard input")
				if err != nil {
					return err
				}
				if in.Codes, err = codefile.Read(path, string(text)); err != nil {
					return err
				}
			}
			body, err := json.Marshal(in)
			if err != nil {
				return err
			}
			var v wire.Voided
			to := roomPath(args[0], "/methods/"+url.PathEscape(args[1])+"/codes/void")
			raw, err := m.Ask(c, http.MethodPost, to, body, &v)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				return m.Printf("%s", codefile.Voided(v.Voided, v.Used, v.Before, v.Unknown, in.Check))
			})
		}),
	}
	flags := c.Flags()
	flags.StringVar(&path, "list", "",
		"`FILE` of codes, one a line or a CSV file with a column called code; - for standard input")
	flags.IntVar(&in.Batch, "batch", 0, "all codes of batch `N`")
	flags.BoolVar(&in.Check, "check", false, "only count the codes, and change nothing")
	return c
}
