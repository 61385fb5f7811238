package room

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

func endCommand(m *remote.Manager) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "end SLUG",
		Short: "End a room for good",
		Long: `End a room for good: no visitor can join or is called any more, and the
transcript gets no more entries.`,
		Example: "  proofline room end sale\n  proofline room end sale --yes",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			if !yes {
				if err := confirm(m, args[0]); err != nil {
					return err
				}
			}
			return change(m, c, http.MethodPost, roomPath(args[0], "/end"), nil)
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

// confirm asks the user to type the room's slug.
func confirm(m *remote.Manager, slug string) error {
	if !m.Interactive(m.In) {
		return cli.Usage(fmt.Errorf("ending %s cannot be undone", cli.Printable(slug)), "give --yes to confirm")
	}
	_, _ = fmt.Fprintf(m.Err, "This ends the room for good. Type its name, %s, to confirm: ", cli.Printable(slug))
	answer, _ := bufio.NewReader(m.In).ReadString('\n') // on an error, the text read so far counts
	if strings.TrimSpace(answer) != slug {
		return cli.Failed(errors.New("not confirmed, the room has not ended"), "")
	}
	return nil
}
