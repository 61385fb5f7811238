package room

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/setting"
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

// change sends a request whose answer is the room, and prints the room.
func change(m *remote.Manager, c *cobra.Command, method, path string, body []byte) error {
	var room wire.Room
	raw, err := m.Ask(c, method, path, body, &room)
	if err != nil {
		return err
	}
	return m.Print(raw, func() error { return printRoom(m, &room, raw) })
}

// localTime formats a time in the machine's time zone.
func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func printRoom(m *remote.Manager, r *wire.Room, raw []byte) error {
	rows := [][]string{
		{"room", r.Slug}, {"title", r.Title}, {"phase", string(r.Phase)}, {"published", r.URL}, {"key", r.VKey},
	}
	isFree := func(s setting.Setting) bool { return s.Change == setting.Free }
	inPolicy := func(s setting.Setting) bool { return s.Change != setting.Free }
	rows = append(rows, settingRows(raw, inPolicy)...)
	rows = append(rows, messageRows(r.Message)...)
	rows = append(rows, settingRows(raw, isFree)...)
	n := r.Counts
	rows = append(rows,
		[]string{"joined", fmt.Sprintf("%d, %d with a position", n.Arrivals, n.Drawn)},
		[]string{"called", fmt.Sprintf("%d: %d admitted, %d no-shows, %d with time to claim",
			n.Called, n.Admitted, n.NoShows, n.Waiting)})
	rows = append(rows, workRows(r.Work)...)
	for _, a := range r.Awaited {
		draw := fmt.Sprintf("window %d waits for beacon round %d, due at %s", a.Window, a.Round, localTime(a.Due))
		if a.HasRound {
			draw = fmt.Sprintf("window %d waits for witnesses; %d have cosigned", a.Window, len(a.Cosigned))
		}
		rows = append(rows, []string{"draw", draw})
	}
	return m.PrintTable(append(rows, []string{"transcript", fmt.Sprintf("%d entries", r.Size)})...)
}

// workRows describes the beacon round that joins do work for; none in a room without such a method.
func workRows(w *wire.Work) [][]string {
	if w == nil {
		return nil
	}
	text := fmt.Sprintf("beacon round %d has appeared", w.Round)
	if w.Signature == nil {
		text = fmt.Sprintf("waits for beacon round %d, due at %s; joins with work wait, too", w.Round, localTime(w.Due))
	}
	return [][]string{{"work", text}}
}
