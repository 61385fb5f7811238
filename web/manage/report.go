package manage

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// Limits of reports.
const (
	maxReport        = 1 << 20 // bytes
	maxReportRooms   = 100
	reportsTogether  = 8 // number of rooms of a report that are processed concurrently
	maxReportedCount = 1<<53 - 1
	maxReportedOver  = 30_000 // number of IDs in an answer: connectors read at most a million bytes of it
)

// reportInput is a connector's report.
type reportInput struct {
	Node         string            `json:"node" need:"true" doc:"Random ID made when the node starts: 16 bytes as 22 characters of base64url, like every ID here."`
	Site         string            `json:"site" doc:"Site whose rules it runs; empty if they belong to no site of this server."`
	RulesVersion uint64            `json:"rules_version" doc:"Version of these rules."`
	Kind         string            `json:"kind" need:"true" enum:"middleware,proxy,nginx,edge"`
	Version      string            `json:"version" need:"true" doc:"Version of the program."`
	Counts       map[string]uint64 `json:"counts" doc:"Counters by name, since it started."`
	Rooms        []roomReportInput `json:"rooms" doc:"Reports on rooms, at most 100."`
}

// roomReportInput is the part of a report about one room.
type roomReportInput struct {
	Room     string          `json:"room" need:"true" doc:"URL of the room."`
	Mode     string          `json:"mode" enum:"always,scheduled,off,closed,safety-net" doc:"Mode of the room in the rules."`
	Started  []string        `json:"started" doc:"IDs of unqueued sessions that began since the latest answered report. This and the next two lists have at most 2,000 IDs each."`
	Active   []string        `json:"active" doc:"IDs of sessions with activity."`
	Ended    []string        `json:"ended" doc:"IDs of sessions that the site ended."`
	Turned   uint64          `json:"turned" doc:"Number of visitors sent to the line because the share was used up, since the latest answered report."`
	FailOpen []failOpenInput `json:"fail_open" doc:"Finished fail-open intervals, in which all visitors were let in because the room was out of reach; at most 100."`
}

type failOpenInput struct {
	ID       string `json:"id" need:"true"`
	From     int64  `json:"from" need:"true" doc:"Milliseconds since 1970."`
	Until    int64  `json:"until" need:"true" doc:"Milliseconds since 1970."`
	Requests int64  `json:"requests" need:"true" doc:"Number of requests that were let in."`
}

// reportedJSON is the answer to a report, which holds until the next one.
type reportedJSON struct {
	Rooms     []reportedRoomJSON `json:"rooms" doc:"Rooms in the order of the report."`
	TokenEnds int64              `json:"token_ends,omitempty" doc:"Expiry of the request's token, in milliseconds since 1970; missing if it never expires."`
}

// reportedRoomJSON is the part of the answer about one room. If Error is set, the other fields are
// not.
type reportedRoomJSON struct {
	Room      string    `json:"room" doc:"URL of the room, as reported."`
	Error     string    `json:"error,omitempty" enum:"unknown" doc:"unknown: the organization has no such room."`
	Gate      string    `json:"gate,omitempty" enum:"open,shut" doc:"open: visitors get in without waiting."`
	Share     *uint64   `json:"share,omitempty" doc:"Number of unqueued sessions that may begin on this node until its next report."`
	PerMinute *uint32   `json:"per_minute,omitempty" doc:"Unqueued sessions that may begin per minute, on all nodes together."`
	MaxActive *uint32   `json:"max_active,omitempty" doc:"Maximum number of sessions at once, including those with passes; 0: no limit."`
	Nodes     *uint64   `json:"nodes,omitempty" doc:"Number of nodes that share the remaining capacity: those that reported in the last 10 s."`
	SessionMS *int64    `json:"session_ms,omitempty" doc:"Length of an unqueued session after its latest activity."`
	Recorded  *[]string `json:"recorded,omitempty" doc:"IDs of fail-open intervals that are in the transcript, or were stored after the room had ended."`
	Over      *[]string `json:"over,omitempty" doc:"Sessions, by pass or by their own ID, that the site ended in the last 30 s: the latest 2,000, or fewer per room in a report on more than 15 rooms. Refuse their cookies."`
	ReturnKey string    `json:"return_key,omitempty" doc:"Key that signs return URLs: 32 bytes in base64url."`
	Signed    bool      `json:"signed_return,omitempty" doc:"Whether the room redirects only to signed URLs."`
}

func (a *API) reportRoutes() []route {
	return []route{{
		method: http.MethodPost, path: "connectors/report", scope: account.Connect, name: "report", tag: "sites",
		summary: "Report a connector's activity, and get the state of its rooms",
		more:    "A report without an answer can be sent again, extended by what happened since: IDs make that safe.",
		in:      reportInput{}, most: maxReport, example: `{"node": "AAAAAAAAAAAAAAAAAAAAAA", "kind": "proxy", "version": "1.0"}`, out: reportedJSON{}, do: a.report,
	}}
}

func (a *API) report(c *call) (reply, error) {
	in, err := decode[reportInput](c)
	if err != nil {
		return reply{}, err
	}
	list, err := in.reports()
	if err != nil {
		return reply{}, err
	}
	err = a.Sites.Seen(c, c.actor.Org, site.Node{ID: in.Node, Site: in.Site, RulesVersion: in.RulesVersion, Kind: in.Kind, Version: in.Version, Counts: in.Counts})
	if err != nil && !errors.Is(err, account.ErrTooMany) { // a connector that is not listed works as well
		return reply{}, err
	}
	out := reportedJSON{Rooms: make([]reportedRoomJSON, len(list))}
	if ends := c.actor.Expires; !ends.IsZero() {
		out.TokenEnds = ends.UnixMilli()
	}
	group, ctx := errgroup.WithContext(c)
	group.SetLimit(reportsTogether)
	for i := range list {
		group.Go(func() (err error) {
			out.Rooms[i], err = a.reportRoom(ctx, c.actor, in.Rooms[i].Room, list[i], maxReportedOver/len(list))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return reply{}, err
	}
	return answer(out)
}

// reportRoom processes the report about one room. The answer lists at most mostOver ended sessions.
func (a *API) reportRoom(ctx context.Context, by account.Actor, address string, in room.Report, mostOver int) (reportedRoomJSON, error) {
	r, err := a.roomAt(ctx, by, address)
	if errors.Is(err, room.ErrNotFound) {
		return reportedRoomJSON{Room: address, Error: "unknown"}, nil
	}
	if err != nil {
		return reportedRoomJSON{}, err
	}
	told, err := r.Report(ctx, in)
	if err != nil {
		return reportedRoomJSON{}, err
	}
	settings, _ := r.Settings()
	session, recorded, over, key := told.Session.Milliseconds(), idTexts(told.Recorded), idTexts(told.Over[:min(len(told.Over), mostOver)]), r.ReturnKey()
	return reportedRoomJSON{
		Room: address, Gate: string(told.Gate), Share: &told.Share, PerMinute: &told.Outflow.PerMinute, MaxActive: &told.Outflow.MaxActive,
		Nodes: &told.Nodes, SessionMS: &session, Recorded: &recorded, Over: &over, ReturnKey: base64.RawURLEncoding.EncodeToString(key[:]), Signed: settings.SignedReturn,
	}, nil
}

func idTexts(ids []uuid.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = base64.RawURLEncoding.EncodeToString(id[:])
	}
	return texts
}

// roomAt returns the room of the actor's organization with the given URL; [room.ErrNotFound].
func (a *API) roomAt(ctx context.Context, by account.Actor, address string) (*room.Room, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, room.ErrNotFound
	}
	r, err := a.Control.Rooms.Get(ctx, u.Path[strings.LastIndexByte(u.Path, '/')+1:])
	if err == nil && (r.Owner.Org != by.Org || r.URL != address) {
		err = room.ErrNotFound
	}
	return r, err
}

// reports parses the rooms of the report. The error is an [*invalid.Error] that lists all
// problems.
func (in *reportInput) reports() ([]room.Report, error) {
	if n := len(in.Rooms); n > maxReportRooms {
		return nil, invalid.Field("rooms", fmt.Sprintf("has %d elements: send at most %d", n, maxReportRooms))
	}
	p := reportParser{}
	node := p.id("node", in.Node)
	list := make([]room.Report, len(in.Rooms))
	for i := range in.Rooms {
		list[i] = p.room(fmt.Sprintf("rooms[%d].", i), &in.Rooms[i])
		list[i].Node = node
	}
	if err := p.wrong.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// reportParser collects the problems of a report.
type reportParser struct{ wrong invalid.List }

func (p *reportParser) room(field string, in *roomReportInput) room.Report {
	switch in.Mode {
	case "", "always", "scheduled", "off", "closed", "safety-net":
	default:
		p.wrong.Add(field+"mode", "must be always, scheduled, off, closed or safety-net")
	}
	out := room.Report{
		Shares: in.Mode == "safety-net", Turned: in.Turned,
		Started: p.ids(field+"started", in.Started), Active: p.ids(field+"active", in.Active), Ended: p.ids(field+"ended", in.Ended),
	}
	if len(in.FailOpen) > room.MaxFailOpen {
		p.wrong.Add(field+"fail_open", fmt.Sprintf("has %d elements: send at most %d", len(in.FailOpen), room.MaxFailOpen))
		return out
	}
	for i, u := range in.FailOpen {
		field := fmt.Sprintf("%sfail_open[%d]", field, i)
		if u.From < 1 || u.From >= u.Until || u.Until > maxReportedCount || u.Requests < 0 || u.Requests > maxReportedCount {
			p.wrong.Add(field, "must have from, a later until, both in milliseconds since 1970, and the number of requests")
		}
		out.FailOpen = append(out.FailOpen, pgroom.FailOpen{ID: p.id(field+".id", u.ID), From: u.From, Until: u.Until, Requests: u.Requests})
	}
	return out
}

func (p *reportParser) ids(field string, list []string) []uuid.UUID {
	if len(list) > room.MaxTold {
		p.wrong.Add(field, fmt.Sprintf("has %d elements: send at most %d", len(list), room.MaxTold))
		return nil
	}
	ids := make([]uuid.UUID, len(list))
	for i, text := range list {
		before := len(p.wrong)
		if ids[i] = p.id(field, text); len(p.wrong) > before {
			return nil // one problem is enough
		}
	}
	return ids
}

func (p *reportParser) id(field, text string) (id uuid.UUID) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(id) || len(text) != base64.RawURLEncoding.EncodedLen(len(id)) { // the decoder skips line breaks
		p.wrong.Add(field, "must be 22 characters of base64url")
		return id
	}
	return uuid.UUID(b)
}
