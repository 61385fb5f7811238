package manage

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

func newRoom(r *room.Room) wire.Room {
	s, list := r.Snapshot(), []wire.Awaited{}
	for _, a := range r.Evidence.Awaited() {
		list = append(list, wire.Awaited{
			Window: uint64(a.Window), Round: a.Round, Due: a.Due, HasRound: a.HasRound,
			Cosigned: append([]string{}, a.Cosigned...),
		})
	}
	var work *wire.Work
	if s.Door != nil && s.Door.Work != nil {
		work = &wire.Work{Round: s.Door.Work.Round, Due: s.Door.Work.Due}
		if s.Door.Work.Signature != nil {
			signature := hex.EncodeToString(s.Door.Work.Signature)
			work.Signature = &signature
		}
	}
	return wire.Room{
		Config: r.Config(), Host: r.Owner.Host, Origin: r.Origin, URL: r.URL, VKey: r.VKey,
		Phase: s.Phase(r.Now()), Created: r.Created(), Size: s.Size,
		Counts: countsOf(s), Message: s.Message(r.Now()), ClaimsFrozen: r.Snapshot().ClaimsFrozen,
		Awaited: list, Work: work,
	}
}

// shown answers with a room, unless err is set.
func shown(r *room.Room, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return reply{body: newRoom(r), etag: roomTag(r)}, nil
}

func newSummary(s control.Summary) wire.Summary {
	out := wire.Summary{
		Slug: s.Slug, Title: s.Title, URL: s.URL, Host: s.Host, Phase: s.Phase, Created: s.Created, Ended: s.Ended,
		Archived: s.Archived,
	}
	if s.Snapshot != nil {
		counts := countsOf(s.Snapshot)
		out.Counts = &counts
	}
	return out
}

// listed names the settings with one kind of change.
func listed(by setting.Change) string {
	var names []string
	for _, s := range setting.All() {
		if s.Change == by {
			names = append(names, "`"+s.Name+"`")
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// rooms serves rooms: their settings and their lists.
type rooms struct {
	control *control.Rooms
	links   links
}

func (a rooms) routes() []route {
	const tag = "rooms"
	return append(a.codeRoutes(), []route{
		{
			method: http.MethodGet, path: "rooms", scope: account.Read, name: "listRooms", tag: tag,
			summary: "List the rooms of the organization, newest first",
			query: append(paged(control.MaxPage),
				parameter{
					name: "search", about: "Only rooms with this text in slug or title.",
					schema: schema{"type": "string"},
				},
				parameter{
					name: "archived", about: "true: only archived rooms; false: only the others.",
					schema: schema{"type": "boolean"},
				}),
			out: wire.RoomList{}, do: a.listRooms,
		},
		{
			method: http.MethodPost, path: "rooms", scope: account.Operate, name: "createRoom", tag: tag,
			summary: "Publish a room",
			more:    "Its policy is the first entry of its transcript and can only be changed by amendments.",
			in:      wire.CreateInput{},
			example: `{"slug": "sale", "title": "Summer sale", "opens": "2030-05-01T11:30:00Z", "starts": "2030-05-01T12:00:00Z", "outflow": {"per_minute": 300}, "targets": ["https://shop.example.com"]}`,
			out:     wire.Room{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.createRoom,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}", scope: account.Read, name: "showRoom", tag: tag,
			summary: "Show the settings and the state of a room",
			out:     wire.Room{}, tagged: true,
			do: func(c *call) (reply, error) { return shown(a.control.Room(c, c.actor, c.param("slug"))) },
		},
		{
			method: http.MethodPatch, path: "rooms/{slug}", scope: account.Operate, name: "amendRoom", tag: tag,
			summary: "Amend a room",
			more: "Missing members stay unchanged. The transcript records changes of " + listed(setting.Recorded) +
				" and of the message, but not those of " + listed(setting.Free) + ".",
			in:      wire.AmendInput{},
			example: `{"outflow": {"per_minute": 120}, "message": {"default": "en", "texts": {"en": "The shop is slow, we let in fewer people.", "de": "Der Shop ist langsam, wir lassen weniger Leute ein."}, "for": "30m"}}`,
			out:     wire.Room{}, tagged: true, matches: true, do: a.amendRoom,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/duplicate", scope: account.Operate, name: "duplicateRoom",
			tag:     tag,
			summary: "Copy a room to a draft",
			more:    "Its times move by whole weeks, so that it opens in the future at the same time of the same weekday.",
			out:     wire.Draft{}, status: http.StatusCreated, key: keyKept, tagged: true, do: a.duplicate,
		},
		a.archiveRoute("archive", "archiveRoom", "Archive a room that has ended",
			"Lists no longer show it; its transcript stays published.", hiddenFromLists),
		a.archiveRoute("unarchive", "unarchiveRoom", "Show an archived room in lists again", "", shownInLists),
	}...)
}

func (a rooms) codeRoutes() []route {
	const tag = "rooms"
	return []route{
		{
			method: http.MethodPost, path: "rooms/{slug}/methods/{method}/codes", scope: account.Operate,
			name: "makeCodes", tag: tag,
			summary: "Make codes that confirm visitors",
			more: "For a method whose key is the server's own: the server's issuer takes each code once, for one place. " +
				"The answer has the only copy of the codes.",
			in: wire.CodesInput{}, example: `{"count": 500}`, out: wire.Codes{}, status: http.StatusCreated,
			key: keySecret, do: a.makeCodes,
		},
		{
			method: http.MethodGet, path: "rooms/{slug}/methods/{method}/codes", scope: account.Operate,
			name: "listCodes", tag: tag, summary: "Count the codes of a method by batch", out: wire.CodeBatches{},
			do: a.listCodes,
		},
		{
			method: http.MethodPost, path: "rooms/{slug}/methods/{method}/codes/void", scope: account.Operate,
			name: "voidCodes", tag: tag, summary: "Void codes that were not used yet", in: wire.VoidInput{},
			example: `{"codes": ["K7QF-9X2M-4TRB-0A8C"]}`, out: wire.Voided{}, most: 8 * maxBody, do: a.voidCodes,
		},
	}
}

func (a rooms) listRooms(c *call) (reply, error) {
	most, err := c.limit(control.MaxPage)
	if err != nil {
		return reply{}, err
	}
	archived, err := c.flag("archived")
	if err != nil {
		return reply{}, err
	}
	page, err := a.control.List(c, c.actor, control.Filter{
		Search: c.query("search"), Archived: archived, Cursor: c.query("cursor"), Max: most,
	})
	if err != nil {
		return reply{}, err
	}
	out := wire.RoomList{Rooms: []wire.Summary{}, Next: cursorOf(page.Next)}
	for _, s := range page.List {
		out.Rooms = append(out.Rooms, newSummary(s))
	}
	return reply{body: out, next: out.Next}, nil
}

func (a rooms) createRoom(c *call) (reply, error) {
	host, config, err := splitHost(c.body)
	if err != nil {
		return reply{}, err
	}
	parsed, err := room.ParseConfig(config)
	if err != nil {
		return reply{}, err
	}
	r, err := a.control.Create(c, c.actor, parsed, control.Place{Host: host})
	out, err := shown(r, err)
	if err == nil {
		out.location = a.links.to("rooms", r.Slug)
	}
	return out, err
}

// splitHost removes the host from a room's JSON. It ignores JSON that cannot be parsed, because the
// parser of the rest reports that.
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

func (a rooms) amendRoom(c *call) (reply, error) {
	slug := c.param("slug")
	r, err := a.control.Room(c, c.actor, slug)
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
	return shown(a.control.Amend(c, c.actor, slug, amendment, match))
}

// Bodies of requests that hide a room from lists or show it.
const (
	shownInLists    = false
	hiddenFromLists = true
)

// archiveRoute returns the route that archives a room, or the one that shows it in lists again.
func (a rooms) archiveRoute(verb, name, summary, more string, state bool) route {
	return route{
		method: http.MethodPost, path: "rooms/{slug}/" + verb, scope: account.Operate, name: name, tag: "rooms",
		summary: summary, more: more, out: wire.Room{}, tagged: true,
		do: func(c *call) (reply, error) { return shown(a.control.Archive(c, c.actor, c.param("slug"), state)) },
	}
}

func (a rooms) makeCodes(c *call) (reply, error) {
	in, err := decode[wire.CodesInput](c)
	if err != nil {
		return reply{}, err
	}
	codes, total, err := a.control.MakeCodes(c, c.actor, c.param("slug"), c.param("method"), in.Count)
	return reply{body: wire.Codes{Codes: codes, Total: total}}, err
}

func (a rooms) listCodes(c *call) (reply, error) {
	batches, err := a.control.Codes(c, c.actor, c.param("slug"), c.param("method"))
	list := wire.CodeBatches{Batches: []wire.CodeBatch{}}
	for _, b := range batches {
		list.Batches = append(list.Batches, wire.CodeBatch(b))
	}
	return reply{body: list}, err
}

func (a rooms) voidCodes(c *call) (reply, error) {
	in, err := decode[wire.VoidInput](c)
	if err != nil {
		return reply{}, err
	}
	which := control.CodesToVoid{Batch: in.Batch, Codes: in.Codes}
	v, err := a.control.VoidCodes(c, c.actor, c.param("slug"), c.param("method"), which, in.Check)
	return reply{body: wire.Voided(v)}, err
}

func (a rooms) duplicate(c *call) (reply, error) {
	return a.links.madeDraft(a.control.Drafts.Duplicate(c, c.actor, c.param("slug")))
}

// ticketOf parses the ticket in the path.
func (c *call) ticketOf() (fairness.Ticket, error) {
	t, err := fairness.ParseTicket(c.param("ticket"))
	if err != nil {
		return t, invalid.Field("ticket", "must be a lower-case UUID of version 8")
	}
	return t, nil
}

// countsOf returns the counts of a room. Of the places called, it counts those of visitors: with slots or lots, others
// are nobody's.
func countsOf(s *room.Snapshot) wire.Counts {
	n := wire.Counts(s.Counts)
	n.Called = s.Passed
	return n
}
