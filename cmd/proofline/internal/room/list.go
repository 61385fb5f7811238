package room

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func listCommand(m *remote.Manager) *cobra.Command {
	var archived bool
	var search string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the rooms, newest first",
		Example: "  proofline room list\n  proofline room list --search vienna\n  proofline room list --archived --json",
		Args:    cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			list, raw, err := allRooms(m, c, url.Values{"archived": {strconv.FormatBool(archived)}, "search": {search}})
			if err != nil {
				return err
			}
			return m.Print(raw, func() error {
				none := "no rooms yet: proofline room create --help"
				if archived || search != "" {
					none = "no rooms match"
				}
				return printRooms(m, list, none)
			})
		}),
	}
	c.Flags().BoolVar(&archived, "archived", false, "list archived rooms instead")
	c.Flags().StringVar(&search, "search", "", "list only rooms with this `TEXT` in name or title")
	return c
}

// pageSize is the number of rooms in one request.
const pageSize = "200"

// allRooms fetches a list page by page. It also returns the list's JSON.
func allRooms(m *remote.Manager, c *cobra.Command,
	query url.Values) (list []wire.Summary, raw json.RawMessage, err error) {
	query.Set("limit", pageSize)
	rooms := []json.RawMessage{}
	for {
		var page struct {
			Rooms []json.RawMessage `json:"rooms"` // JSON of [wire.Summary], with members that this program does not know
			Next  *string           `json:"next"`
		}
		if _, err := m.Ask(c, "GET", "/v1/rooms?"+query.Encode(), nil, &page); err != nil {
			return nil, nil, err
		}
		rooms = append(rooms, page.Rooms...)
		if page.Next == nil {
			break
		}
		query.Set("cursor", *page.Next)
	}
	if raw, err = json.Marshal(map[string]any{"rooms": rooms}); err != nil {
		return nil, nil, err
	}
	var all wire.RoomList
	err = json.Unmarshal(raw, &all)
	return all.Rooms, raw, err
}

func printRooms(m *remote.Manager, rooms []wire.Summary, none string) error {
	if len(rooms) == 0 {
		return m.Printf("%s\n", none)
	}
	rows := [][]string{{"ROOM", "PHASE", "JOINED", "ADMITTED", "CREATED", "TITLE"}}
	for _, r := range rooms {
		joined, admitted := "-", "-" // for some rooms the server sends no counts
		if r.Counts != nil {
			joined, admitted = strconv.FormatUint(r.Counts.Arrivals, 10), strconv.FormatUint(r.Counts.Admitted, 10)
		}
		rows = append(rows, []string{r.Slug, string(r.Phase), joined, admitted, r.Created.Local().Format(time.DateTime),
			r.Title})
	}
	return m.PrintTable(rows...)
}
