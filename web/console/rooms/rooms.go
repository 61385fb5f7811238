// Package rooms serves the console's pages for setting up rooms: the list, the editor of drafts, settings, brand,
// preview, and tokens for Queue-it connectors.
package rooms

import (
	"context"
	"embed"
	"log/slog"
	"slices"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/web/console/shell"
)

// Sites lists the sites that rooms protect, and their connectors.
type Sites interface {
	List(ctx context.Context, by account.Actor) ([]site.Summary, error)
	AllConnectors(ctx context.Context, by account.Actor) ([]site.Connector, error)
}

// Options configures the pages.
type Options struct {
	Control *control.Rooms
	Sites   Sites
	// Organizations provides the names and logos that previews show; nil: none.
	Organizations *account.Organizations
	// Hosts lists the custom hosts under which an organization may publish rooms; nil: none.
	Hosts    func(ctx context.Context, by account.Actor) ([]string, error)
	Manifest []byte // manifest.json of the built assets, for previews
	Now      func() time.Time
	Log      *slog.Logger
}

//go:embed templates
var files embed.FS

// Part returns the pages.
func Part(o Options) shell.Part {
	return shell.Part{
		Name: "rooms", Templates: shell.Templates(files), Notices: notices,
		Functions: map[string]any{"fieldName": fieldName},
		Routes: slices.Concat(
			(&list{o.Control}).routes(),
			(&editor{control: o.Control, hosts: o.Hosts, trials: newTrials(), log: o.Log}).routes(),
			(&settings{o.Control, o.Sites}).routes(),
			(&queueIt{o.Control}).routes(),
			(&codes{o.Control}).routes(), (&members{o.Control}).routes(),
			newBrands(o).routes(),
		),
	}
}

// notices are shown after an action.
var notices = map[string]string{
	"brand-saved":      "The brand is saved. Visitors see it within five minutes.",
	"draft-deleted":    "The draft is deleted.",
	"draft-saved":      "The draft is saved.",
	"queue-it-cleared": "Visitors return with a pass only. The secret key is deleted.",
	"queue-it-saved":   "The room issues tokens for Queue-it connectors.",
	"room-archived":    "The room is archived. Its transcript stays public.",
	"room-duplicated": "This draft is a copy of the room, some weeks later on the same weekday and at the same time. " +
		"Check its times before you publish it.",
	"room-published":  "The room is published: its rules are the first entry of the public transcript.",
	"room-unarchived": "The room is in the list again.",
	"settings-same":   "Nothing has changed.",
	"settings-saved":  "The changes are saved.",
}
