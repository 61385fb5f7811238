package manage

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// roomJSON is a room as its organizer sees it.
type roomJSON struct {
	room.Config
	Host    *string       `json:"host" doc:"Custom host that the room is published under; null for the server's own."`
	Origin  string        `json:"origin" doc:"Name of the room's log."`
	URL     string        `json:"url" doc:"Where the room is published."`
	VKey    string        `json:"vkey" doc:"Verifies the log's checkpoints (C2SP signed note)."`
	Phase   room.Phase    `json:"phase"`
	Created time.Time     `json:"created"`
	Size    uint64        `json:"size" doc:"Entries of the transcript."`
	Counts  countsJSON    `json:"counts"`
	Message *room.Message `json:"message" doc:"What visitors are told now; null for nothing."`
	Held    bool          `json:"held" doc:"Called people cannot go in for now, and their time to do so stands still."`
	Awaited []awaited     `json:"awaited" doc:"Draws that wait for beacon or witnesses."`
}

type awaited struct {
	Window   uint64    `json:"window"`
	Round    uint64    `json:"round" doc:"Of the beacon."`
	Due      time.Time `json:"due" doc:"When the round appears."`
	HasRound bool      `json:"has_round" doc:"The round is here."`
	Cosigned []string  `json:"cosigned" doc:"Names of the witnesses who have signed."`
}

type countsJSON struct {
	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn" doc:"Arrivals whose window was drawn."`
	Assigned uint64 `json:"assigned" doc:"Places."`
	Called   uint64 `json:"called"`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	Left     uint64 `json:"left" doc:"Gave their places up."`
	Revoked  uint64 `json:"revoked"`
	Waiting  uint64 `json:"waiting" doc:"Called, not admitted yet and expected."`
	InLine   uint64 `json:"in_line" doc:"Neither called nor passed over."`
	Windows  uint64 `json:"windows"`
	Amends   uint64 `json:"amends"`
}

func newRoomJSON(r *room.Room) roomJSON {
	s, list := r.Snapshot(), []awaited{}
	for _, a := range r.Awaited() {
		list = append(list, awaited{uint64(a.Window), a.Round, a.Due, a.HasRound, append([]string{}, a.Cosigned...)})
	}
	return roomJSON{
		Config: r.Config(), Host: r.Owner.Host, Origin: r.Origin, URL: r.URL, VKey: r.VKey,
		Phase: s.Phase(r.Now()), Created: r.Created(), Size: s.Size,
		Counts: countsJSON(s.Counts), Message: s.Message(r.Now()), Held: r.IsHeld(), Awaited: list,
	}
}

// shown answers with a room, unless something went wrong.
func shown(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{body: newRoomJSON(r), etag: roomTag(r)}, nil
}

// summaryJSON is a room in the list. Rooms that have ended are not read from
// their logs for it.
type summaryJSON struct {
	Slug     string      `json:"slug"`
	Title    string      `json:"title"`
	URL      string      `json:"url"`
	Host     *string     `json:"host"`
	Phase    room.Phase  `json:"phase"`
	Created  time.Time   `json:"created"`
	Ended    *time.Time  `json:"ended"`
	Archived *time.Time  `json:"archived"`
	Counts   *countsJSON `json:"counts,omitempty" doc:"Not of rooms that have ended or stopped."`
}

func newSummary(s desk.Summary) summaryJSON {
	out := summaryJSON{Slug: s.Slug, Title: s.Title, URL: s.URL, Host: s.Host, Phase: s.Phase, Created: s.Created, Ended: s.Ended, Archived: s.Archived}
	if s.Snapshot != nil {
		counts := countsJSON(s.Snapshot.Counts)
		out.Counts = &counts
	}
	return out
}

type roomList struct {
	Rooms []summaryJSON `json:"rooms"`
	Next  *string       `json:"next" doc:"The cursor of the next page; null at the end."`
}

// createInput is a room's configuration, and where it belongs.
type createInput struct {
	room.Config
	Host string `json:"host" doc:"A custom host of the organization, to publish the room under. It stays."`
}

// amendInput is what may change while a room lives.
type amendInput struct {
	Title   string              `json:"title"`
	Outflow room.Outflow        `json:"outflow"`
	Message *room.MessageChange `json:"message" doc:"To visitors; null takes it away."`
	Windows []room.WindowRule   `json:"windows" doc:"Hold from the first one's moment on."`
	Closes  time.Time           `json:"closes"`
	room.Settings
}

func (a *API) roomRoutes() []route {
	const tag = "rooms"
	return []route{
		{
			method: http.MethodGet, path: "rooms", scope: account.Read, name: "listRooms", tag: tag,
			summary: "List the rooms of the organization, newest first",
			query: append(paged(desk.MaxPage),
				parameter{name: "search", about: "Only rooms with this text in slug or title.", schema: schema{"type": "string"}},
				parameter{name: "archived", about: "Only rooms that are archived, rather than the others.", schema: schema{"type": "boolean"}}),
			out: roomList{}, do: a.listRooms,
		},
		{
			method: http.MethodPost, path: "rooms", scope: account.Operate, name: "createRoom", tag: tag,
			summary: "Publish a room",
			more:    "Its policy is the first entry of its transcript: what is no amendment can never be changed.",
			in:      createInput{}, example: `{"slug": "sale", "title": "Summer sale", "opens": "2030-05-01T11:30:00Z", "starts": "2030-05-01T12:00:00Z", "outflow": {"per_minute": 300}, "targets": ["https://shop.example.com"]}`,
			out: roomJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createRoom,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}", scope: account.Read, name: "showRoom", tag: tag,
			summary: "Show how a room is set up and how far it has come",
			out:     roomJSON{}, tagged: true, do: func(c *call) (reply, error) { return shown(a.Desk.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPatch, path: "rooms/{slug}", scope: account.Operate, name: "amendRoom", tag: tag,
			summary: "Change a room that lives",
			more:    "What is not said stays as it is. Outflow, message, windows and closing time are entries of the transcript; title, targets, brand and the limit of people in line are not. Members of a brand are all new.",
			in:      amendInput{}, example: `{"outflow": {"per_minute": 120}, "message": {"default": "en", "texts": {"en": "The shop is slow, we let in fewer people.", "de": "Der Shop ist langsam, wir lassen weniger Leute ein."}, "for": "30m"}}`,
			out: roomJSON{}, tagged: true, matches: true, do: a.amendRoom,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/duplicate", scope: account.Operate, name: "duplicateRoom", tag: tag,
			summary: "Make a draft of a room",
			more:    "Its times are moved by whole weeks, so that it opens in the future at the same time of the same weekday.",
			out:     draftJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.duplicate,
		},
		a.archiveRoute(true), a.archiveRoute(false),
	}
}

func (a *API) listRooms(c *call) (reply, error) {
	most, err := c.limit(desk.MaxPage)
	if err != nil {
		return reply{}, err
	}
	archived, err := c.flag("archived")
	if err != nil {
		return reply{}, err
	}
	page, err := a.Desk.List(c, c.actor, desk.Filter{Search: c.query("search"), Archived: archived, Cursor: c.query("cursor"), Max: most})
	if err != nil {
		return reply{}, err
	}
	out := roomList{Rooms: []summaryJSON{}, Next: cursorOf(page.Next)}
	for _, s := range page.List {
		out.Rooms = append(out.Rooms, newSummary(s))
	}
	return reply{body: out, next: out.Next}, nil
}

func (a *API) createRoom(c *call) (reply, error) {
	host, config, err := splitHost(c.body)
	if err != nil {
		return reply{}, err
	}
	parsed, err := room.ParseConfig(config)
	if err != nil {
		return reply{}, err
	}
	r, err := a.Desk.Create(c, c.actor, parsed, desk.Place{Host: host})
	out, err := shown(r, err)
	if err == nil {
		out.location = a.location("rooms", r.Slug)
	}
	return out, err
}

// location is the address of what was made.
func (a *API) location(folder, name string) string {
	return a.PublicURL + Prefix + folder + "/" + url.PathEscape(name)
}

// splitHost takes the host out of a room's JSON. What cannot be read is left to
// whoever reads the rest.
func splitHost(body []byte) (host string, config []byte, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members["host"] == nil {
		return "", body, nil //nolint:nilerr // see above
	}
	var text *string
	if json.Unmarshal(members["host"], &text) != nil {
		return "", nil, invalid("host", "must be a text")
	}
	delete(members, "host")
	config, err = json.Marshal(members)
	if text != nil {
		host = *text
	}
	return host, config, err
}

func (a *API) amendRoom(c *call) (reply, error) {
	slug := c.param("slug")
	r, err := a.Desk.Room(c, c.actor, slug)
	if err != nil {
		return reply{}, err
	}
	amendment, err := room.ParseAmendment(c.body)
	if err != nil {
		return reply{}, err
	}
	var match func(room.Config) bool
	if condition, ok := c.ifMatch(); ok {
		match = func(room.Config) bool { return matches(condition, roomTag(r)) }
	}
	return shown(a.Desk.Amend(c, c.actor, slug, amendment, match))
}

func (a *API) archiveRoute(archived bool) route {
	r := route{
		method: http.MethodPost, path: "rooms/{slug}/archive", scope: account.Operate, name: "archiveRoom", tag: "rooms",
		summary: "Leave a room that has ended out of lists", more: "Its transcript stays where it is published.",
		out: roomJSON{}, tagged: true,
	}
	if !archived {
		r.path, r.name, r.summary, r.more = "rooms/{slug}/unarchive", "unarchiveRoom", "Take an archived room into lists again", ""
	}
	r.do = func(c *call) (reply, error) { return shown(a.Desk.Archive(c, c.actor, c.param("slug"), archived)) }
	return r
}

func (a *API) duplicate(c *call) (reply, error) {
	d, err := a.Desk.Duplicate(c, c.actor, c.param("slug"))
	return a.madeDraft(d, err)
}

// ticketOf reads the ticket that the path names.
func (c *call) ticketOf() (fairness.Ticket, error) {
	t, err := fairness.ParseTicket(c.param("ticket"))
	if err != nil {
		return t, invalid("ticket", "must be a lower-case UUID of version 8")
	}
	return t, nil
}
