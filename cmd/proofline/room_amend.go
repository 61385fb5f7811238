package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// amendFlags are what an amendment can say without a file.
type amendFlags struct {
	outflow           api.Outflow
	closes, title     string
	targets           []string
	signedReturn      bool
	maxWaiting        uint32
	timeZone          string
	color, background string
	logo              string // file
}

func (o *organizer) amendCommand() *cobra.Command {
	var f amendFlags
	c := &cobra.Command{
		Use:   "amend SLUG [FILE.json]",
		Short: "Change outflow, windows, closing time or looks",
		Long: `Change what may change while a room lives: title, outflow, closing time, and
the windows that have not opened. Give a JSON file, - for standard input, or
flags; what is not given stays as it is. Outflow, windows and closing time are
entries of the transcript; title, targets, signed returns, brand, time zone and
the limit of people in line are not. The message to visitors has a command of
its own: proofline room message.`,
		Example: `  proofline room amend sale --per-minute 500
  proofline room amend sale --target https://shop.example.com --color '#c2185b' --logo logo.png
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
	flags.StringVar(&f.closes, "closes", "", "take no more joins from this `TIME` on")
	flags.StringVar(&f.title, "title", "", "call the room `TEXT`")
	flags.StringArrayVar(&f.targets, "target", nil, "`URL` that admitted visitors may be sent to, the first by default; repeat it for more, give an empty one for none")
	flags.BoolVar(&f.signedReturn, "signed-return", false, "send admitted visitors only where a connector has signed that it takes a pass, others to the first target; =false turns it off")
	flags.Uint32Var(&f.maxWaiting, "max-waiting", 0, "let at most `N` people be in line at once, 0 for no limit")
	flags.StringVar(&f.timeZone, "time-zone", "", "give times in reports in this time `ZONE`, such as Europe/Vienna, UTC if empty")
	flags.StringVar(&f.logo, "logo", "", "`FILE` of a PNG, JPEG or WebP image of at most 64 KiB, none if empty")
	flags.StringVar(&f.color, "color", "", "`#rrggbb` of buttons and links, ours if empty")
	flags.StringVar(&f.background, "background", "", "`#rrggbb` of the page, ours if empty")
	return c
}

// amendment returns the JSON to send.
func (o *organizer) amendment(c *cobra.Command, f *amendFlags, args []string) ([]byte, error) {
	body := given(c, map[string]any{
		"closes": f.closes, "title": f.title, "max-waiting": f.maxWaiting, "signed-return": f.signedReturn, "time-zone": f.timeZone,
		"target": slices.DeleteFunc(f.targets, func(target string) bool { return target == "" }),
	})
	outflow := given(c, map[string]any{"per-minute": f.outflow.PerMinute, "max-active": f.outflow.MaxActive})
	if len(outflow) > 0 {
		body["outflow"] = outflow
	}
	looks := given(c, map[string]any{"logo": "", "color": f.color, "background": f.background})
	switch flags := len(body)+len(looks) > 0; {
	case len(args) == 2 && flags:
		return nil, usage(errors.New("a file and flags cannot both say the change"), "put it all into the file")
	case len(args) == 2:
		return o.readFile(args[1])
	case !flags:
		return nil, usage(errors.New("nothing to change"), "give a file, or flags: proofline room amend --help")
	}
	if len(looks) > 0 {
		brand, err := o.brand(c, f, args[0])
		if err != nil {
			return nil, err
		}
		body["brand"] = brand
	}
	return json.Marshal(body)
}

// given returns the flags among these that were given, by the names of their
// members in JSON.
func given(c *cobra.Command, values map[string]any) map[string]any {
	body := map[string]any{}
	for flag, value := range values {
		if c.Flags().Changed(flag) {
			body[members[flag]] = value
		}
	}
	return body
}

var members = map[string]string{
	"closes": "closes", "title": "title", "max-waiting": "max_waiting", "target": "targets", "signed-return": "signed_return", "time-zone": "time_zone",
	"per-minute": "per_minute", "max-active": "max_active", "logo": "logo", "color": "color", "background": "background",
}

// brand returns the room's brand with what the flags change about it.
func (o *organizer) brand(c *cobra.Command, f *amendFlags, slug string) (brand api.Brand, err error) {
	var room api.Room
	if _, err := o.ask(c, http.MethodGet, roomPath(slug, ""), nil, &room); err != nil {
		return brand, err
	}
	brand = api.Brand{}
	maps.Copy(brand, room.Brand)
	maps.Copy(brand, given(c, map[string]any{"color": f.color, "background": f.background}))
	if c.Flags().Changed("logo") {
		brand["logo"], err = o.logo(f.logo)
	}
	return brand, err
}

// logo returns an image's file as a data URL; the server says which it refuses.
func (o *organizer) logo(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	image, err := o.readFile(file)
	if err != nil {
		return "", err
	}
	kind := http.DetectContentType(image)
	if !strings.HasPrefix(kind, "image/") {
		return "", usage(fmt.Errorf("--logo: %s is no image", file), "give a PNG, JPEG or WebP image of at most 64 KiB")
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(image), nil
}
