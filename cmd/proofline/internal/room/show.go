package room

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

func showCommand(m *remote.Manager) *cobra.Command {
	return &cobra.Command{
		Use:     "show SLUG",
		Short:   "Show a room's configuration and progress",
		Example: "  proofline room show sale\n  proofline room show sale --json",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return change(m, c, http.MethodGet, roomPath(args[0], ""), nil)
		}),
	}
}

// change sends a request that is answered with the room, and prints it.
func change(m *remote.Manager, c *cobra.Command, method, path string, body []byte) error {
	var room api.Room
	raw, err := m.Ask(c, method, path, body, &room)
	if err != nil {
		return err
	}
	return m.Print(raw, func() error { return printRoom(m, &room) })
}

// localTime formats a time in the machine's time zone.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func printRoom(m *remote.Manager, r *api.Room) error {
	closes, maxActive := "never", "any number at once"
	if r.Closes != nil {
		closes = localTime(*r.Closes)
	}
	if r.Outflow.MaxActive > 0 {
		maxActive = fmt.Sprintf("at most %d at once", r.Outflow.MaxActive)
	}
	rows := [][]string{
		{"room", r.Slug}, {"title", r.Title}, {"phase", r.Phase}, {"published", r.URL}, {"key", r.VKey},
		{"opens", localTime(r.Opens)}, {"starts", localTime(r.Starts)}, {"closes", closes},
	}
	for _, w := range r.Windows {
		rows = append(rows, []string{"windows", fmt.Sprintf("of %s from %s", w.Length, localTime(w.From))})
	}
	rows = append(rows, []string{"outflow", fmt.Sprintf("%d a minute, %s", r.Outflow.PerMinute, maxActive)},
		[]string{"claim", "within " + r.Claim}, []string{"session", r.Session}, []string{"beacon", beaconWords(r)})
	if r.Quorum > 0 {
		rows = append(rows, []string{"witnesses", fmt.Sprintf("%d or more should cosign each freeze", r.Quorum)})
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
		rows = append(rows, []string{"return URL", "only if a connector has signed it, else the first target"})
	}
	if n := r.Counts; n != nil {
		rows = append(rows,
			[]string{"joined", fmt.Sprintf("%d, %d with a position", n.Arrivals, n.Drawn)},
			[]string{"called", fmt.Sprintf("%d: %d admitted, %d no-shows, %d with time to claim",
				n.Called, n.Admitted, n.NoShows, n.Waiting)})
	}
	for _, a := range r.Awaited {
		draw := fmt.Sprintf("window %d waits for beacon round %d, due at %s", a.Window, a.Round, localTime(a.Due))
		if a.HasRound {
			draw = fmt.Sprintf("window %d waits for witnesses; %d have cosigned", a.Window, len(a.Cosigned))
		}
		rows = append(rows, []string{"draw", draw})
	}
	return m.PrintTable(append(rows, []string{"transcript", fmt.Sprintf("%d entries", r.Size)})...)
}

// beaconWords describes the beacon of a room's draws.
func beaconWords(r *api.Room) string {
	if r.Beacon == "none" {
		return "none: auditors cannot tell whether the operator chose the outcome"
	}
	return fmt.Sprintf("%s, a round at least %s after the freeze", r.Beacon, r.Margin)
}
