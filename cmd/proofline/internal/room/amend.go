package room

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

func amendCommand(m *remote.Manager) *cobra.Command {
	var flags settingFlags
	c := &cobra.Command{
		Use:   "amend SLUG [FILE.json]",
		Short: "Change outflow, windows, closing time or brand",
		Long: `Change a published room: title, outflow, closing time, windows that have not
opened, and more. Give a JSON file, - for standard input, or flags; members that
you leave out do not change. The transcript records changes of the windows, and
those that the flags below name as recorded; the others it does not. For the
message to visitors use "proofline room message".`,
		Example: `  proofline room amend sale --per-minute 500
  proofline room amend sale --target https://shop.example.com --color '#c2185b' --logo logo.png
  proofline room amend sale --closes 2030-05-01T18:00:00Z
  echo '{"windows": [{"from": "2030-05-01T14:00:00Z", "length": "5m"}]}' | proofline room amend sale -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			body, err := amendment(m, c, flags, args)
			if err != nil {
				return err
			}
			return change(m, c, http.MethodPatch, roomPath(args[0], ""), body)
		}),
	}
	flags = addSettingFlags(c.Flags())
	return c
}

// amendment returns the request body.
func amendment(m *remote.Manager, c *cobra.Command, flags settingFlags, args []string) ([]byte, error) {
	body := flags.members()
	switch given := len(body) > 0; {
	case len(args) == 2 && given:
		return nil, cli.Usage(errors.New("give either a file or flags"), "put the whole change into the file")
	case len(args) == 2:
		return readFile(m, args[1])
	case !given:
		return nil, cli.Usage(errors.New("nothing to change"), "give a file, or flags: proofline room amend --help")
	}
	if looks, ok := body["brand"].(map[string]any); ok {
		brand, err := changedBrand(m, c, looks, args[0])
		if err != nil {
			return nil, err
		}
		body["brand"] = brand
	}
	return json.Marshal(body)
}

// changedBrand returns the room's brand with the changes of the flags. Logos are given as files.
func changedBrand(m *remote.Manager, c *cobra.Command, looks map[string]any, slug string) (map[string]any, error) {
	// The brand is read as a map to keep members that this program does not know.
	var room struct{ Brand map[string]any }
	if _, err := m.Ask(c, http.MethodGet, roomPath(slug, ""), nil, &room); err != nil {
		return nil, err
	}
	brand := map[string]any{}
	maps.Copy(brand, room.Brand)
	maps.Copy(brand, looks)
	file, ok := looks["logo"].(string)
	if !ok {
		return brand, nil
	}
	logo, err := readLogo(m, file)
	brand["logo"] = logo
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
