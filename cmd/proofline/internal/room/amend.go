package room

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
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

// amendFlags are the changes that need no file.
type amendFlags struct {
	outflow           api.Outflow
	closes, title     string
	targets           []string
	signedReturn      bool
	maxWaiting        uint32
	timeZone          string
	color, background string
	logo              string // name of a file
}

func amendCommand(m *remote.Manager) *cobra.Command {
	var f amendFlags
	c := &cobra.Command{
		Use:   "amend SLUG [FILE.json]",
		Short: "Change outflow, windows, closing time or brand",
		Long: `Change a published room: title, outflow, closing time, windows that have not
opened, and more. Give a JSON file, - for standard input, or flags; members that
you leave out do not change. Changes of outflow, windows and closing time are
entries in the transcript; those of title, targets, signed returns, brand, time
zone and the limit of visitors in line are not. For the message to visitors use
"proofline room message".`,
		Example: `  proofline room amend sale --per-minute 500
  proofline room amend sale --target https://shop.example.com --color '#c2185b' --logo logo.png
  proofline room amend sale --closes 2030-05-01T18:00:00Z
  echo '{"windows": [{"from": "2030-05-01T14:00:00Z", "length": "5m"}]}' | proofline room amend sale -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			body, err := amendment(m, c, &f, args)
			if err != nil {
				return err
			}
			return change(m, c, http.MethodPatch, roomPath(args[0], ""), body)
		}),
	}
	flags := c.Flags()
	flags.Uint32Var(&f.outflow.PerMinute, "per-minute", 0, "admit `N` visitors a minute")
	flags.Uint32Var(&f.outflow.MaxActive, "max-active", 0, "at most `N` visitors at the site at once; 0: no limit")
	flags.StringVar(&f.closes, "closes", "", "`TIME` at which joining ends")
	flags.StringVar(&f.title, "title", "", "`TEXT` of the room's title")
	flags.StringArrayVar(&f.targets, "target", nil,
		"`URL` that admitted visitors may be sent to, the first by default; repeat the flag for more; empty: none")
	flags.BoolVar(&f.signedReturn, "signed-return", false,
		"send admitted visitors only to URLs that a connector has signed, others to the first target; =false turns it off")
	flags.Uint32Var(&f.maxWaiting, "max-waiting", 0, "at most `N` visitors in line at once; 0: no limit")
	flags.StringVar(&f.timeZone, "time-zone", "", "`ZONE` of times in reports, such as Europe/Vienna; empty: UTC")
	flags.StringVar(&f.logo, "logo", "", "`FILE` of a PNG, JPEG or WebP image of at most 64 KiB; empty: no logo")
	flags.StringVar(&f.color, "color", "", "`#rrggbb` of buttons and links; empty: the default")
	flags.StringVar(&f.background, "background", "", "`#rrggbb` of the page; empty: the default")
	return c
}

// amendment returns the request body.
func amendment(m *remote.Manager, c *cobra.Command, f *amendFlags, args []string) ([]byte, error) {
	body := given(c, map[string]any{
		"closes": f.closes, "title": f.title, "max-waiting": f.maxWaiting, "signed-return": f.signedReturn,
		"time-zone": f.timeZone,
		"target":    slices.DeleteFunc(f.targets, func(target string) bool { return target == "" }),
	})
	outflow := given(c, map[string]any{"per-minute": f.outflow.PerMinute, "max-active": f.outflow.MaxActive})
	if len(outflow) > 0 {
		body["outflow"] = outflow
	}
	looks := given(c, map[string]any{"logo": "", "color": f.color, "background": f.background})
	switch flags := len(body)+len(looks) > 0; {
	case len(args) == 2 && flags:
		return nil, cli.Usage(errors.New("give either a file or flags"), "put the whole change into the file")
	case len(args) == 2:
		return readFile(m, args[1])
	case !flags:
		return nil, cli.Usage(errors.New("nothing to change"), "give a file, or flags: proofline room amend --help")
	}
	if len(looks) > 0 {
		brand, err := changedBrand(m, c, f, args[0])
		if err != nil {
			return nil, err
		}
		body["brand"] = brand
	}
	return json.Marshal(body)
}

// given returns those of the values whose flags are on the command line, by the names
// of their JSON members.
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
	"closes": "closes", "title": "title", "max-waiting": "max_waiting", "target": "targets",
	"signed-return": "signed_return", "time-zone": "time_zone",
	"per-minute": "per_minute", "max-active": "max_active", "logo": "logo", "color": "color", "background": "background",
}

// changedBrand returns the room's brand with the changes of the flags.
func changedBrand(m *remote.Manager, c *cobra.Command, f *amendFlags, slug string) (brand api.Brand, err error) {
	var room api.Room
	if _, err := m.Ask(c, http.MethodGet, roomPath(slug, ""), nil, &room); err != nil {
		return brand, err
	}
	brand = api.Brand{}
	maps.Copy(brand, room.Brand)
	maps.Copy(brand, given(c, map[string]any{"color": f.color, "background": f.background}))
	if c.Flags().Changed("logo") {
		brand["logo"], err = readLogo(m, f.logo)
	}
	return brand, err
}

// readLogo returns an image file as a data URL. The server checks the image.
func readLogo(m *remote.Manager, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	image, err := readFile(m, file)
	if err != nil {
		return "", err
	}
	kind := http.DetectContentType(image)
	if !strings.HasPrefix(kind, "image/") {
		return "", cli.Usage(fmt.Errorf("--logo: %s is not an image", file),
			"give a PNG, JPEG or WebP image of at most 64 KiB")
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(image), nil
}
