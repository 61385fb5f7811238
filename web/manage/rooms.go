package manage

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

// roomJSON is a room as its organizer sees it.
type roomJSON struct {
	room.Config
	Host         *string       `json:"host" doc:"Custom host that the room is published under; null: the server's own host."`
	Origin       string        `json:"origin" doc:"Name of the room's log."`
	URL          string        `json:"url" doc:"URL of the room."`
	VKey         string        `json:"vkey" doc:"Key that verifies the log's checkpoints (C2SP signed note)."`
	Phase        room.Phase    `json:"phase"`
	Created      time.Time     `json:"created"`
	Size         uint64        `json:"size" doc:"Number of entries in the transcript."`
	Counts       countsJSON    `json:"counts"`
	Message      *room.Message `json:"message" doc:"Message shown to visitors now; null: none."`
	ClaimsFrozen bool          `json:"claims_frozen" doc:"Whether claims are frozen: called visitors cannot claim for now, and their claim time stands still."`
	Awaited      []awaited     `json:"awaited" doc:"Draws that wait for the beacon or for witnesses."`
}

type awaited struct {
	Window   uint64    `json:"window"`
	Round    uint64    `json:"round" doc:"Number of the beacon's round."`
	Due      time.Time `json:"due" doc:"Time at which the round appears."`
	HasRound bool      `json:"has_round" doc:"Whether the server has the round."`
	Cosigned []string  `json:"cosigned" doc:"Names of the witnesses that have signed."`
}

type countsJSON struct {
	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn" doc:"Number of arrivals in drawn windows."`
	Assigned uint64 `json:"assigned" doc:"Places."`
	Called   uint64 `json:"called"`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	Left     uint64 `json:"left" doc:"Number of visitors who gave up their places."`
	Revoked  uint64 `json:"revoked"`
	Waiting  uint64 `json:"waiting" doc:"Visitors who are called, can still claim, and have not yet."`
	InLine   uint64 `json:"in_line" doc:"Number of visitors neither called nor skipped."`
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
		Counts: countsJSON(s.Counts), Message: s.Message(r.Now()), ClaimsFrozen: r.ClaimsFrozen(), Awaited: list,
	}
}

// shown answers with a room, unless err is set.
func shown(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{body: newRoomJSON(r), etag: roomTag(r)}, nil
}

// summaryJSON is a room in a list. The logs of rooms that have ended are not read for it.
type summaryJSON struct {
	Slug     string      `json:"slug"`
	Title    string      `json:"title"`
	URL      string      `json:"url"`
	Host     *string     `json:"host"`
	Phase    room.Phase  `json:"phase"`
	Created  time.Time   `json:"created"`
	Ended    *time.Time  `json:"ended"`
	Archived *time.Time  `json:"archived"`
	Counts   *countsJSON `json:"counts,omitempty" doc:"Missing for rooms that have ended or stopped."`
}

func newSummary(s control.Summary) summaryJSON {
	out := summaryJSON{Slug: s.Slug, Title: s.Title, URL: s.URL, Host: s.Host, Phase: s.Phase, Created: s.Created, Ended: s.Ended, Archived: s.Archived}
	if s.Snapshot != nil {
		counts := countsJSON(s.Snapshot.Counts)
		out.Counts = &counts
	}
	return out
}

type roomList struct {
	Rooms []summaryJSON `json:"rooms"`
	Next  *string       `json:"next" doc:"Cursor of the next page; null on the last page."`
}

// createInput is a new room's configuration and host.
type createInput struct {
	room.Config
	Host string `json:"host" doc:"Custom host of the organization to publish the room under. It cannot be changed later."`
}

// amendInput is the body of an amendment: the settings that may change, and the message.
type amendInput struct {
	room.Config
	Message *room.MessageChange `json:"message"`
}

// listed names the settings that change in one way.
func listed(by setting.Change) string {
	var names []string
	for _, s := range setting.All() {
		if s.Change == by {
			names = append(names, "`"+s.Name+"`")
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func (a *API) roomRoutes() []route {
	const tag = "rooms"
	return []route{
		{
			method: http.MethodGet, path: "rooms", scope: account.Read, name: "listRooms", tag: tag,
			summary: "List the rooms of the organization, newest first",
			query: append(paged(control.MaxPage),
				parameter{name: "search", about: "Only rooms with this text in slug or title.", schema: schema{"type": "string"}},
				parameter{name: "archived", about: "true: only archived rooms; false: only the others.", schema: schema{"type": "boolean"}}),
			out: roomList{}, do: a.listRooms,
		},
		{
			method: http.MethodPost, path: "rooms", scope: account.Operate, name: "createRoom", tag: tag,
			summary: "Publish a room",
			more:    "Its policy is the first entry of its transcript and can only be changed by amendments.",
			in:      createInput{}, example: `{"slug": "sale", "title": "Summer sale", "opens": "2030-05-01T11:30:00Z", "starts": "2030-05-01T12:00:00Z", "outflow": {"per_minute": 300}, "targets": ["https://shop.example.com"]}`,
			out: roomJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createRoom,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}", scope: account.Read, name: "showRoom", tag: tag,
			summary: "Show the settings and the state of a room",
			out:     roomJSON{}, tagged: true, do: func(c *call) (reply, error) { return shown(a.Control.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPatch, path: "rooms/{slug}", scope: account.Operate, name: "amendRoom", tag: tag,
			summary: "Amend a room",
			more: "Missing members stay unchanged. The transcript records changes of " + listed(setting.Recorded) +
				" and of the message, but not those of " + listed(setting.Free) + ".",
			in: amendInput{}, example: `{"outflow": {"per_minute": 120}, "message": {"default": "en", "texts": {"en": "The shop is slow, we let in fewer people.", "de": "Der Shop ist langsam, wir lassen weniger Leute ein."}, "for": "30m"}}`,
			out: roomJSON{}, tagged: true, matches: true, do: a.amendRoom,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/duplicate", scope: account.Operate, name: "duplicateRoom", tag: tag,
			summary: "Copy a room to a draft",
			more:    "Its times move by whole weeks, so that it opens in the future at the same time of the same weekday.",
			out:     draftJSON{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.duplicate,
		},
		a.archiveRoute(true), a.archiveRoute(false),
	}
}

func (a *API) listRooms(c *call) (reply, error) {
	most, err := c.limit(control.MaxPage)
	if err != nil {
		return reply{}, err
	}
	archived, err := c.flag("archived")
	if err != nil {
		return reply{}, err
	}
	page, err := a.Control.List(c, c.actor, control.Filter{Search: c.query("search"), Archived: archived, Cursor: c.query("cursor"), Max: most})
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
	r, err := a.Control.Create(c, c.actor, parsed, control.Place{Host: host})
	out, err := shown(r, err)
	if err == nil {
		out.location = a.location("rooms", r.Slug)
	}
	return out, err
}

// location returns the URL of a created object.
func (a *API) location(folder, name string) string {
	return a.PublicURL + Prefix + folder + "/" + url.PathEscape(name)
}

// splitHost removes the host from a room's JSON. It ignores JSON that cannot be parsed, since the
// parser
// of the rest reports that.
func splitHost(body []byte) (host string, config []byte, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members["host"] == nil {
		return "", body, nil //nolint:nilerr // reported by the parser of the rest
	}
	var text *string
	if json.Unmarshal(members["host"], &text) != nil {
		return "", nil, invalid.Field("host", "must be a string")
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
	r, err := a.Control.Room(c, c.actor, slug)
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
	return shown(a.Control.Amend(c, c.actor, slug, amendment, match))
}

func (a *API) archiveRoute(archived bool) route {
	r := route{
		method: http.MethodPost, path: "rooms/{slug}/archive", scope: account.Operate, name: "archiveRoom", tag: "rooms",
		summary: "Archive a room that has ended", more: "Lists no longer show it; its transcript stays published.",
		out: roomJSON{}, tagged: true,
	}
	if !archived {
		r.path, r.name, r.summary, r.more = "rooms/{slug}/unarchive", "unarchiveRoom", "Show an archived room in lists again", ""
	}
	r.do = func(c *call) (reply, error) { return shown(a.Control.Archive(c, c.actor, c.param("slug"), archived)) }
	return r
}

func (a *API) duplicate(c *call) (reply, error) {
	d, err := a.Control.Duplicate(c, c.actor, c.param("slug"))
	return a.madeDraft(d, err)
}

// ticketOf parses the ticket in the path.
func (c *call) ticketOf() (fairness.Ticket, error) {
	t, err := fairness.ParseTicket(c.param("ticket"))
	if err != nil {
		return t, invalid.Field("ticket", "must be a lower-case UUID of version 8")
	}
	return t, nil
}
