package rooms

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// publishQuestion shows what will be published. config is the valid configuration of the form.
func (h *editor) publishQuestion(config room.Config, f roomForm) shell.Question {
	opens, starts := any("when it is published"), any("when it opens")
	if config.Opens != nil {
		opens = *config.Opens
	}
	if config.Starts != nil {
		starts = *config.Starts
	}
	closes := any("when you end the room")
	if config.Closes != nil {
		closes = *config.Closes
	}
	return shell.Question{
		Title: "Publish this room?", Button: "Publish", Saved: true,
		Warnings: append(publishWarnings(config, f, h.control.Beacons()), h.beaconWarnings(config)...),
		Changes: append([]shell.Change{
			shell.Shown("Title", config.Title),
			shell.Shown("Address", h.control.BaseURL(f.Host)+config.Slug),
			shell.Shown("Opens", opens),
			shell.Shown("Starts", starts),
			shell.Shown("Closes", closes),
			shell.Shown("Time zone", zoneWords(cmp.Or(config.TimeZone, "UTC"))),
			shell.Shown("Windows", scheduleWords(config.Windows)),
			shell.Shown("Pace", format.PerMinute(cmp.Or(config.Outflow.PerMinute, room.DefaultPerMinute))),
			shell.Shown("In the shop at once", format.Limit(config.Outflow.MaxActive)),
			shell.Shown("Time to enter", lengthOr(config.Claim, room.DefaultClaim)),
			shell.Shown("Shop", shopWords(config.Targets)),
			shell.Shown("Beacon", cmp.Or(config.Beacon, h.defaultBeacon())),
		}, otherSettings(f)...),
		Notes: []string{
			"Publishing cannot be undone: these rules become the first entry of the public transcript, and opening and " +
				"start cannot be moved.",
			"You can still change the outflow, the message, the closing time and windows that have not opened. Every such " +
				"change is public.",
		},
	}
}

// otherSettings lists the settings with values that publishQuestion does not already show.
func otherSettings(f roomForm) (list []shell.Change) {
	worded := []string{"title", "slug", "opens", "starts", "closes", "time_zone", "outflow.per_minute",
		"outflow.max_active", "claim", "targets", "beacon"}
	for _, s := range formSettings() {
		if text := f.Value(s.Name); text != "" && !slices.Contains(worded, s.Name) {
			list = append(list, shell.Shown(s.Label, typedWords(s.Kind, text)))
		}
	}
	return list
}

// zoneWords names the event's time zone, and the time zone of the page if it differs. The script fills in
// the browser's.
func zoneWords(zone string) template.HTML {
	zone = template.HTMLEscapeString(zone)
	return template.HTML(zone + ` <span class="soft" data-unless-zone="` + zone + //nolint:gosec // escaped
		`">(times here: <span data-time-zone>UTC</span>)</span>`)
}

// publishWarnings lists what organizers commonly overlook.
func publishWarnings(config room.Config, f roomForm, beacons []string) (list []string) {
	if config.Opens == nil {
		list = append(list, "The room opens immediately, because it has no opening time.")
	}
	if len(config.Targets) == 0 {
		list = append(list, "The shop has no address: called visitors stay on the waiting page with a pass.")
	}
	if chosen := cmp.Or(f.Value("beacon"), beacons[0]); chosen == fairness.NoBeacon {
		warning := "Without a beacon of public randomness no visitor can check that you did not choose the outcome of " +
			"the draws (level 1)."
		if len(beacons) == 1 {
			warning += " The operator of this server can add one."
		}
		list = append(list, warning)
	}
	return list
}

// scheduleWords describes the windows, with a line for each change.
func scheduleWords(list []room.WindowRule) any {
	if len(list) == 0 {
		return "one until the start, then of " + format.Duration(room.DefaultWindow)
	}
	lines := make([]template.HTML, len(list))
	for i, w := range list {
		lines[i] = template.HTML("from the opening: ") //nolint:gosec // constant
		if i > 0 && w.From != nil {
			lines[i] = "from " + format.When(*w.From) + ": "
		}
		lines[i] += template.HTML(template.HTMLEscapeString(format.Duration(w.Length))) //nolint:gosec // escaped
	}
	var text template.HTML
	for i, line := range lines {
		if i > 0 {
			text += "<br>"
		}
		text += line
	}
	return text
}

func lengthOr(given *room.Duration, otherwise time.Duration) string {
	if given == nil {
		return format.Duration(otherwise)
	}
	return format.Duration(given)
}

func shopWords(targets []string) any {
	if len(targets) == 0 {
		return "none"
	}
	return targets[0] + more(len(targets)-1)
}

// more returns the number of further items.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
