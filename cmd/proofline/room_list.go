package main

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func (o *organizer) listCommand() *cobra.Command {
	var archived bool
	var search string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the rooms, newest first",
		Example: "  proofline room list\n  proofline room list --search vienna\n  proofline room list --archived --json",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			list, raw, err := o.allRooms(c, url.Values{"archived": {strconv.FormatBool(archived)}, "search": {search}})
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printRooms(list, archived || search != "") })
		}),
	}
	c.Flags().BoolVar(&archived, "archived", false, "list archived rooms instead")
	c.Flags().StringVar(&search, "search", "", "list only rooms with this `TEXT` in name or title")
	return c
}

// pageSize is how many rooms are asked for at once.
const pageSize = "200"

// allRooms asks for a list, page by page, and returns it as the server says it
// too.
func (o *organizer) allRooms(c *cobra.Command, query url.Values) (list []api.Room, raw json.RawMessage, err error) {
	query.Set("limit", pageSize)
	said := []json.RawMessage{}
	for {
		var page struct {
			Rooms []json.RawMessage `json:"rooms"`
			Next  *string           `json:"next"`
		}
		if _, err := o.ask(c, "GET", "/v1/rooms?"+query.Encode(), nil, &page); err != nil {
			return nil, nil, err
		}
		said = append(said, page.Rooms...)
		if page.Next == nil {
			break
		}
		query.Set("cursor", *page.Next)
	}
	if raw, err = json.Marshal(map[string]any{"rooms": said}); err != nil {
		return nil, nil, err
	}
	var all struct{ Rooms []api.Room }
	err = json.Unmarshal(raw, &all)
	return all.Rooms, raw, err
}

func (o *organizer) printRooms(rooms []api.Room, chosen bool) error {
	if len(rooms) == 0 && chosen {
		return o.printf("no such rooms\n")
	}
	if len(rooms) == 0 {
		return o.printf("no rooms yet: proofline room create --help\n")
	}
	rows := [][]string{{"ROOM", "PHASE", "JOINED", "ADMITTED", "CREATED", "TITLE"}}
	for _, r := range rooms {
		joined, admitted := "-", "-" // not counted once a room has ended
		if r.Counts != nil {
			joined, admitted = strconv.FormatUint(r.Counts.Arrivals, 10), strconv.FormatUint(r.Counts.Admitted, 10)
		}
		rows = append(rows, []string{r.Slug, r.Phase, joined, admitted, r.Created.Local().Format(time.DateTime), r.Title})
	}
	return o.printTable(rows...)
}
