package main

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// amendFlags are what an amendment can say without a file.
type amendFlags struct {
	outflow                api.Outflow
	message, closes, title string
}

func (o *organizer) amendCommand() *cobra.Command {
	var f amendFlags
	c := &cobra.Command{
		Use:   "amend SLUG [FILE.json]",
		Short: "Change outflow, message, windows or closing time",
		Long: `Change what may change while a room lives: title, outflow, message to visitors,
closing time, and the windows that have not opened. Give a JSON file, - for
standard input, or flags; what is not given stays as it is. All but the title is
an entry of the transcript.`,
		Example: `  proofline room amend sale --per-minute 500
  proofline room amend sale --message "The shop is slow, we let in fewer people." --per-minute 100
  proofline room amend sale --closes 2030-05-01T18:00:00Z
  echo '{"windows": [{"from": "2030-05-01T14:00:00Z", "length": "5m"}]}' | proofline room amend sale -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: runs(func(c *cobra.Command, args []string) error {
			body, err := o.amendment(c, &f, args)
			if err != nil {
				return err
			}
			return o.change(c, http.MethodPatch, roomPath(args[0], ""), body)
		}),
	}
	flags := c.Flags()
	flags.Uint32Var(&f.outflow.PerMinute, "per-minute", 0, "let in `N` people a minute")
	flags.Uint32Var(&f.outflow.MaxActive, "max-active", 0, "at most `N` at once, 0 for no limit")
	flags.StringVar(&f.message, "message", "", "show this `TEXT` to visitors, nothing if empty")
	flags.StringVar(&f.closes, "closes", "", "take no more joins from this `TIME` on")
	flags.StringVar(&f.title, "title", "", "call the room `TEXT`")
	return c
}

// amendment returns the JSON to send.
func (o *organizer) amendment(c *cobra.Command, f *amendFlags, args []string) ([]byte, error) {
	body := map[string]any{}
	given := func(name string, value any) {
		if c.Flags().Changed(name) {
			body[name] = value
		}
	}
	given("message", f.message)
	given("closes", f.closes)
	given("title", f.title)
	outflow := c.Flags().Changed("per-minute") || c.Flags().Changed("max-active")
	switch flags := outflow || len(body) > 0; {
	case len(args) == 2 && flags:
		return nil, usage(errors.New("a file and flags cannot both say the change"), "put it all into the file")
	case len(args) == 2:
		return o.readFile(args[1])
	case !flags:
		return nil, usage(errors.New("nothing to change"), "give a file, or flags: proofline room amend --help")
	}
	if outflow {
		if err := o.completeOutflow(c, f, args[0]); err != nil {
			return nil, err
		}
		body["outflow"] = f.outflow
	}
	return json.Marshal(body)
}

// completeOutflow fills in the half of the outflow that stays as it is.
func (o *organizer) completeOutflow(c *cobra.Command, f *amendFlags, slug string) error {
	var room api.Room
	if _, err := o.ask(c, http.MethodGet, roomPath(slug, ""), nil, &room); err != nil {
		return err
	}
	if !c.Flags().Changed("per-minute") {
		f.outflow.PerMinute = room.Outflow.PerMinute
	}
	if !c.Flags().Changed("max-active") {
		f.outflow.MaxActive = room.Outflow.MaxActive
	}
	return nil
}
