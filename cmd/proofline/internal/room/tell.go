package room

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

func tellCommand(m *remote.Manager) *cobra.Command {
	c := &cobra.Command{
		Use:   "tell",
		Short: "State stock or prices in the transcript",
		Long: `Write a statement into the public transcript: dated, signed, and there for good. It
changes nothing. An audit adds statements up, and lists those that contradict each
other.`,
		Args: cobra.NoArgs,
		RunE: cli.CommandMissing,
	}
	c.AddCommand(
		tellOne(m, fairness.TellStock, "stock SLUG CATEGORY LEFT", "State how many seats of a category are left",
			"  proofline room tell stock sale stalls 120", func(in *wire.TellInput, args []string) (err error) {
				in.Left, err = strconv.ParseUint(args[0], 10, 53)
				return err
			}),
		tellOne(m, fairness.TellPrice, "price SLUG CATEGORY MIN MAX CURRENCY",
			"State what a seat of a category costs, in minor units",
			"  proofline room tell price sale stalls 4500 9000 EUR",
			func(in *wire.TellInput, args []string) (err error) {
				var wrong error
				in.Min, err = strconv.ParseUint(args[0], 10, 53)
				in.Max, wrong = strconv.ParseUint(args[1], 10, 53)
				in.Currency = args[2]
				return errors.Join(err, wrong)
			}),
	)
	return c
}

// tellOne returns the command of a subject; read reads the arguments after the category.
func tellOne(m *remote.Manager, subject fairness.Subject, use, short, example string,
	read func(in *wire.TellInput, args []string) error) *cobra.Command {
	words := map[fairness.Subject]int{fairness.TellStock: 3, fairness.TellPrice: 5}
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ExactArgs(words[subject]),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			in := wire.TellInput{Subject: subject, Category: args[1]}
			if err := read(&in, args[2:]); err != nil {
				return cli.Usage(err, "give whole numbers")
			}
			body, err := json.Marshal(in)
			if err != nil {
				return err
			}
			return change(m, c, http.MethodPost, roomPath(args[0], "/tell"), body)
		}),
	}
}
