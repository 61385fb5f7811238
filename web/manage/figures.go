package manage

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
)

// figures serves the metrics of rooms.
type figures struct {
	control *control.Rooms
	live    *live.Live
}

func (a figures) routes() []route {
	const tag = "figures"
	csv := parameter{
		name: "format", about: "Format of the answer: json, or csv for a table.",
		schema: schema{"type": "string", "enum": []string{"json", "csv"}},
	}
	return []route{
		{
			method: http.MethodGet, path: "rooms/{slug}/figures", scope: account.Read, name: "showFigures", tag: tag,
			summary: "Show a room's current metrics", more: "They are updated once a second.", out: live.Figures{},
			do: a.showFigures,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/recent", scope: account.Read, name: "showRecent", tag: tag,
			summary: "Show the last 15 minutes of a room, second by second",
			more:    "Limited to what the answering node has in memory.", out: live.Series{}, do: a.showRecent,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/history", scope: account.Read, name: "showHistory", tag: tag,
			summary: "Show a room minute by minute",
			query: []parameter{
				{
					name: "from", about: "Start; default: 30 days ago.",
					schema: schema{"type": "string", "format": "date-time"},
				},
				{
					name: "to", about: "End, exclusive; default: now.",
					schema: schema{"type": "string", "format": "date-time"},
				},
				{
					name:   "step",
					about:  "Length of a step in whole minutes, such as 5m; by default there are at most 1,000.",
					schema: schema{"type": "string"},
				},
				csv,
			},
			out: wire.History{}, csv: true, do: a.showHistory,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/summary", scope: account.Read, name: "showSummary", tag: tag,
			summary: "Show the summary of a room that has ended",
			more:    "It is computed from the transcript on the first request, which may get 503 computing for a moment.",
			query:   []parameter{csv}, out: live.Summary{}, csv: true, do: a.showSummary,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/export", scope: account.Read, name: "exportRoom", tag: tag,
			summary: "Export all metrics of a room", out: live.Export{}, do: a.export,
		},
	}
}

// mayLook checks that the room is the actor's, which package live does not do.
func (a figures) mayLook(c *call) error {
	_, err := a.control.Room(c, c.actor, c.param("slug"))
	return err
}

func (a figures) showFigures(c *call) (reply, error) {
	if err := a.mayLook(c); err != nil {
		return reply{}, err
	}
	f, err := a.live.Figures(c, c.param("slug"))
	return reply{body: f}, err
}

func (a figures) showRecent(c *call) (reply, error) {
	if err := a.mayLook(c); err != nil {
		return reply{}, err
	}
	s, err := a.live.Recent(c, c.param("slug"))
	return reply{body: s}, err
}

// wantsCSV parses the requested format.
func (c *call) wantsCSV() (bool, error) {
	switch c.query("format") {
	case "", "json":
		return false, nil
	case "csv":
		return true, nil
	}
	return false, invalid.Field("format", "must be json or csv")
}

func (a figures) showHistory(c *call) (reply, error) {
	if err := a.mayLook(c); err != nil {
		return reply{}, err
	}
	from, err := c.time("from")
	if err != nil {
		return reply{}, err
	}
	to, err := c.time("to")
	if err != nil {
		return reply{}, err
	}
	var step time.Duration
	if text := c.query("step"); text != "" {
		if step, err = time.ParseDuration(text); err != nil {
			return reply{}, invalid.Field("step", "must be whole minutes, such as 5m")
		}
	}
	csv, err := c.wantsCSV()
	if err != nil {
		return reply{}, err
	}
	list, err := a.live.History(c, c.param("slug"), from, to, step)
	if errors.Is(err, live.ErrSpan) {
		return reply{}, invalid.Field("from", "must be before to, and step whole minutes")
	}
	if err != nil || !csv {
		return reply{body: wire.History{Minutes: list}}, err
	}
	var b bytes.Buffer
	err = live.WriteMinutes(&b, list)
	return table(&b, err)
}

func table(b *bytes.Buffer, err error) (reply, error) {
	return reply{raw: b.Bytes(), mediaType: "text/csv; charset=utf-8"}, err
}

func (a figures) showSummary(c *call) (reply, error) {
	r, err := a.control.Room(c, c.actor, c.param("slug"))
	if err != nil {
		return reply{}, err
	}
	csv, err := c.wantsCSV()
	if err != nil {
		return reply{}, err
	}
	s, err := a.live.Summary(c, r.Slug)
	if err != nil || !csv {
		return reply{body: s}, err
	}
	var b bytes.Buffer
	err = live.WriteSummary(&b, r.Snapshot().Title, s)
	return table(&b, err)
}

func (a figures) export(c *call) (reply, error) {
	if err := a.mayLook(c); err != nil {
		return reply{}, err
	}
	e, err := a.live.Export(c, c.param("slug"))
	return reply{body: e}, err
}
