package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

func (o *organizer) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show SLUG",
		Short:   "Show how a room is set up and how far it has come",
		Example: "  proofline room show sale\n  proofline room show sale --json",
		Args:    cobra.ExactArgs(1),
		RunE: runs(func(c *cobra.Command, args []string) error {
			return o.change(c, http.MethodGet, roomPath(args[0], ""), nil)
		}),
	}
}

// change sends a request that is answered with the room, and prints it.
func (o *organizer) change(c *cobra.Command, method, path string, body []byte) error {
	var room api.Room
	raw, err := o.ask(c, method, path, body, &room)
	if err != nil {
		return err
	}
	return o.print(raw, func() error { return o.printRoom(&room) })
}

// localTime writes a moment in the time zone of the machine.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func (o *organizer) printRoom(r *api.Room) error {
	closes, most := "never", "any number at once"
	if r.Closes != nil {
		closes = localTime(*r.Closes)
	}
	if r.Outflow.MaxActive > 0 {
		most = fmt.Sprintf("at most %d at once", r.Outflow.MaxActive)
	}
	rows := [][]string{
		{"room", r.Slug}, {"title", r.Title}, {"phase", r.Phase}, {"published", r.URL}, {"key", r.VKey},
		{"opens", localTime(r.Opens)}, {"starts", localTime(r.Starts)}, {"closes", closes},
	}
	for _, w := range r.Windows {
		rows = append(rows, []string{"windows", fmt.Sprintf("of %s from %s", w.Length, localTime(w.From))})
	}
	rows = append(rows, []string{"outflow", fmt.Sprintf("%d a minute, %s", r.Outflow.PerMinute, most)},
		[]string{"claim", "within " + r.Claim}, []string{"session", r.Session}, []string{"beacon", beaconWords(r)})
	if r.Quorum > 0 {
		rows = append(rows, []string{"witnesses", fmt.Sprintf("%d or more should sign each freeze", r.Quorum)})
	}
	rows = append(rows, messageRows(r.Message)...)
	if r.MaxWaiting > 0 {
		rows = append(rows, []string{"in line", fmt.Sprintf("at most %d", r.MaxWaiting)})
	}
	if r.TimeZone != "" {
		rows = append(rows, []string{"time zone", r.TimeZone})
	}
	for _, target := range r.Targets {
		rows = append(rows, []string{"target", target})
	}
	if r.SignedReturn {
		rows = append(rows, []string{"way back", "where a connector has signed it, else to the first target"})
	}
	if n := r.Counts; n != nil {
		rows = append(rows,
			[]string{"joined", fmt.Sprintf("%d, of them %d have a place", n.Arrivals, n.Drawn)},
			[]string{"called", fmt.Sprintf("%d: %d admitted, %d did not come, %d expected", n.Called, n.Admitted, n.NoShows, n.Waiting)})
	}
	for _, a := range r.Awaited {
		what := fmt.Sprintf("window %d waits for beacon round %d, which appears at %s", a.Window, a.Round, localTime(a.Due))
		if a.HasRound {
			what = fmt.Sprintf("window %d waits for witnesses; %d have signed", a.Window, len(a.Cosigned))
		}
		rows = append(rows, []string{"draw", what})
	}
	return o.printTable(append(rows, []string{"transcript", fmt.Sprintf("%d entries", r.Size)})...)
}

// beaconWords say what decides a room's draws, beside its own key.
func beaconWords(r *api.Room) string {
	if r.Beacon == "none" {
		return "none: auditors cannot tell that nobody chose the outcome"
	}
	return fmt.Sprintf("%s, a round at least %s after the freeze", r.Beacon, r.Margin)
}
