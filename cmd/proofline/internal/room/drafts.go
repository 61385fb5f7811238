package room

import (
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func duplicateCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "duplicate SLUG",
		Short: "Copy a room into a draft",
		Long: `Copy a room into a draft. Its times move by whole weeks, so that the draft opens
in the future, at the same time on the same weekday. Use the console to edit and
publish drafts.`,
		Example: "  proofline room duplicate sale",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			var draft wire.Draft
			raw, err := m.Ask(c, http.MethodPost, roomPath(args[0], "/duplicate"), nil, &draft)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				return m.Printf("draft %s is a copy of %s\n", draft.ID, cli.Printable(args[0]))
			})
		}),
	}
}

func draftsCommand(m *remote.Manager) *cobra.Command {
	return remote.ListCommand(m, &cobra.Command{
		Use:     "drafts",
		Short:   "List the drafts, latest change first",
		Example: "  proofline room drafts\n  proofline room drafts --json",
	}, "/v1/drafts", func(list wire.DraftList) error { return printDrafts(m, list.Drafts) })
}

func printDrafts(m *remote.Manager, drafts []wire.Draft) error {
	if len(drafts) == 0 {
		return m.Printf("no drafts: make one with proofline room duplicate\n")
	}
	rows := [][]string{{"DRAFT", "ROOM", "CHANGED", "BY", "PROBLEMS", "TITLE"}}
	for _, d := range drafts {
		problems := "-"
		if n := len(d.Problems); n > 0 {
			problems = strconv.Itoa(n)
		}
		rows = append(rows, []string{d.ID.String(), d.Slug, d.Changed.Local().Format(time.DateTime), d.By, problems,
			d.Title})
	}
	return m.PrintTable(rows...)
}
