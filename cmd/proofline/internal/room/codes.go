package room

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/codefile"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func codesCommand(m *remote.Manager) *cobra.Command {
	var files codefile.Files
	var count int
	c := &cobra.Command{
		Use:   "codes SLUG METHOD",
		Short: "Make codes that confirm visitors",
		Long: `Make codes for a method of a room whose key is "own": the server's own issuer
confirms a visitor who types one in, and takes each code once, for one place. The
server keeps keyed hashes: the CSV file is the only copy of the codes.`,
		Example: "  proofline room codes sale presale --count 500 --out codes.csv --sheet codes.html",
		Args:    cobra.ExactArgs(2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
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
			var made wire.Codes
			path := roomPath(args[0], "/methods/"+url.PathEscape(args[1])+"/codes")
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
	c.Flags().IntVar(&count, "count", 0, "make `N` codes (required)")
	files.Add(c.Flags())
	return c
}
