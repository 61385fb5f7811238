package room

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

const maxFile = 1 << 20 // size of a room's file, in bytes

func createCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:   "create FILE.json",
		Short: "Create a room from a file, or from standard input with -",
		Long: `Create a room from a JSON file. Only the slug is required; the rest has defaults.
Times are RFC 3339, durations such as "30s". The room's policy is published at
once: later only an amendment can change it.`,
		Example: `  proofline room create sale.json

  sale.json:
  {
    "slug": "sale", "title": "Summer sale",
    "opens": "2030-05-01T11:30:00Z", "starts": "2030-05-01T12:00:00Z",
    "windows": [{"from": "2030-05-01T11:30:00Z", "length": "30m"},
                {"from": "2030-05-01T12:00:00Z", "length": "1m"}],
    "outflow": {"per_minute": 300, "max_active": 2000},
    "claim": "5m", "session": "15m", "max_waiting": 200000,
    "targets": ["https://shop.example.com"]
  }

  The README has a table of all settings.`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			body, err := readFile(m, args[0])
			if err != nil {
				return err
			}
			var room wire.Room
			raw, err := m.Ask(c, "POST", "/v1/rooms", body, &room)
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				return m.Printf("room %s is at %s\nthe key of its transcript is %s\n", room.Slug, room.URL, room.VKey)
			})
		}),
	}
}

// readFile reads a file, or standard input for "-".
func readFile(m *remote.Manager, name string) ([]byte, error) {
	body, err := m.ReadFile(name, maxFile, "give the room's file, or - for standard input")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(body)) == "" {
		return nil, cli.Usage(fmt.Errorf("%s is empty", name), "see an example with proofline room create --help")
	}
	return body, nil
}
