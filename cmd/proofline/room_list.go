package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func (o *organizer) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the rooms, newest first",
		Example: "  proofline room list\n  proofline room list --json",
		Args:    cobra.NoArgs,
		RunE: runs(func(c *cobra.Command, _ []string) error {
			var list struct{ Rooms []api.Room }
			raw, err := o.ask(c, "GET", "/v1/rooms", nil, &list)
			if err != nil {
				return err
			}
			return o.print(raw, func() error { return o.printRooms(list.Rooms) })
		}),
	}
}

func (o *organizer) printRooms(rooms []api.Room) error {
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
