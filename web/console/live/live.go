// Package live serves the console's pages about a published room while it runs and afterwards: the
// dashboard, the controls, rehearsals, the history and the audit report.
package live

import (
	"context"
	"embed"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/web/console/shell"
)

// Rooms finds the rooms that a person may see.
type Rooms = shell.Rooms

// Reports finds the audit reports of rooms.
type Reports interface {
	Of(ctx context.Context, r *room.Room) (pgroom.Report, bool, error)
}

// Sites finds and changes the sites that a room protects.
type Sites interface {
	NamesOf(ctx context.Context, by account.Actor, room string) ([]string, error)
	SwitchOff(ctx context.Context, by account.Actor, room string) error
}

// Options configures the pages.
type Options struct {
	Control *control.Rooms
	Figures *live.Live      // nil: no dashboard and no history
	Sites   Sites           // nil: no sites
	Closing <-chan struct{} // closed when the server stops, so that streams end; nil: never
}

//go:embed templates
var files embed.FS

// Part returns the pages.
func Part(o Options) shell.Part {
	p := shell.Part{
		Name: "live", Templates: shell.Templates(files), Notices: notices,
		Routes: (&controls{o.Control, o.Sites}).routes(),
		Functions: map[string]any{
			"turn": turn, "windowState": windowState, "ahead": ahead, "until": until, "emptied": emptied,
			"verdict": verdict, "script": scriptWords,
		},
	}
	p.Routes = append(p.Routes, (&lists{o.Control}).routes()...)
	if o.Figures != nil {
		p.Routes = append(p.Routes, (&dashboard{
			figures: o.Figures, rooms: o.Control, reports: o.Control.Reports, sites: o.Sites, closing: o.Closing,
		}).routes()...)
	}
	if o.Control.Rehearsals != nil {
		p.Routes = append(p.Routes, (&rehearsals{o.Control}).routes()...)
	}
	return p
}

// notices are shown after an action.
var notices = map[string]string{
	"ended":             "The room has ended. Its transcript stays public.",
	"claims-frozen":     "Claims are frozen. The public transcript records it.",
	"message-back":      "The message is removed. It disappears from pages within about a minute.",
	"message-shown":     "The message is on its way: visitors see it within about a minute.",
	"outflow-changed":   "The outflow is changed. The public transcript records it.",
	"paused":            "Calls are paused. The public transcript records it.",
	"rehearsal-started": "The rehearsal begins in a few seconds.",
	"rehearsal-stopped": "The rehearsal is stopped.",
	"report-begun":      "The audit is running. The report appears under the room's address when it is done.",
	"report-published":  "The audit report is published. Visitors find it under “Was it fair?”.",
	"restored":          "The visitor has the place again. The public transcript records it.",
	"resumed":           "The line continues. The public transcript records it.",
	"revoked":           "The place is revoked. The public transcript records it.",
}
