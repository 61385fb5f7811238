package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

func (o *organizer) endCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "end SLUG",
		Short: "End a room for good",
		Long: `End a room for good: no visitor can join or is called any more, and the
transcript gets no more entries.`,
		Example: "  proofline room end sale\n  proofline room end sale --yes",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			if !yes {
				if err := o.confirm(args[0]); err != nil {
					return err
				}
			}
			return o.change(c, http.MethodPost, roomPath(args[0], "/end"), nil)
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

// confirm asks the user to type the room's slug.
func (o *organizer) confirm(slug string) error {
	if !o.interactive(o.in) {
		return usage(fmt.Errorf("ending %s cannot be undone", printable(slug)), "give --yes to confirm")
	}
	_, _ = fmt.Fprintf(o.err, "This ends the room for good. Type its name, %s, to confirm: ", printable(slug))
	answer, _ := bufio.NewReader(o.in).ReadString('\n') // after an error, the text so far counts
	if strings.TrimSpace(answer) != slug {
		return failed(errors.New("not confirmed, the room has not ended"), "")
	}
	return nil
}
