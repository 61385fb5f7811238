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
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/safetynet"
)

// Limits of reports.
const (
	maxReport        = 1 << 20 // bytes
	maxReportRooms   = 100
	reportsTogether  = 8 // number of a report's rooms that are processed concurrently
	maxReportedCount = 1<<53 - 1
	maxReportedOver  = 30_000 // number of IDs in an answer: connectors read at most a million bytes of it
)

// reports receives the reports of connectors.
type reports struct {
	sites *site.Sites
	rooms roomsBySlug
}

// roomsBySlug finds rooms, or returns [room.ErrNotFound].
type roomsBySlug interface {
	Get(ctx context.Context, slug string) (*room.Room, error)
}

func (a reports) routes() []route {
	return []route{{
		method: http.MethodPost, path: "connectors/report", scope: account.Connect, name: "report", tag: "sites",
		summary: "Report a connector's activity, and get the state of its rooms",
		more:    "A report without an answer can be sent again, even with additions: IDs make that safe.",
		in:      wire.ReportInput{}, most: maxReport,
		example: `{"node": "AAAAAAAAAAAAAAAAAAAAAA", "kind": "proxy", "version": "1.0"}`, out: wire.Reported{},
		do: a.report,
	}}
}

func (a reports) report(c *call) (reply, error) {
	in, err := decode[wire.ReportInput](c)
	if err != nil {
		return reply{}, err
	}
	list, err := parseReport(&in)
	if err != nil {
		return reply{}, err
	}
	err = a.sites.Seen(c, c.actor.Org, site.Node{
		ID: in.Node, Site: in.Site, RulesVersion: in.RulesVersion, Kind: in.Kind, Version: in.Version,
		Counts: in.Counts,
	})
	if err != nil && !account.IsLimit(err) { // a connector works even if it is not listed
		return reply{}, err
	}
	out := wire.Reported{Rooms: make([]wire.ReportedRoom, len(list))}
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
func (a reports) reportRoom(
	ctx context.Context, by account.Actor, address string, in safetynet.Report, mostOver int,
) (wire.ReportedRoom, error) {
	r, err := a.roomAt(ctx, by, address)
	if errors.Is(err, room.ErrNotFound) {
		return wire.ReportedRoom{Room: address, Error: "unknown"}, nil
	}
	if err != nil {
		return wire.ReportedRoom{}, err
	}
	result, err := r.SafetyNet.Report(ctx, in)
	if err != nil {
		return wire.ReportedRoom{}, err
	}
	settings, _ := r.Settings()
	session, recorded, over, key := result.Session.Milliseconds(), idTexts(result.Recorded),
		idTexts(result.Ended[:min(len(result.Ended), mostOver)]), r.PassKeys.ReturnKey()
	return wire.ReportedRoom{
		Room: address, Gate: string(result.Gate), Share: &result.Share, PerMinute: &result.Outflow.PerMinute,
		MaxActive: &result.Outflow.MaxActive,
		Nodes:     &result.Nodes, SessionMS: &session, Recorded: &recorded, Over: &over,
		ReturnKey: base64.RawURLEncoding.EncodeToString(key[:]), Signed: settings.SignedReturn,
	}, nil
}

func idTexts(ids []uuid.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = base64.RawURLEncoding.EncodeToString(id[:])
	}
	return texts
}

// roomAt returns the room of the actor's organization with the given URL, or [room.ErrNotFound].
func (a reports) roomAt(ctx context.Context, by account.Actor, address string) (*room.Room, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, room.ErrNotFound
	}
	r, err := a.rooms.Get(ctx, u.Path[strings.LastIndexByte(u.Path, '/')+1:])
	if err == nil && (r.Owner.Org != by.Org || r.URL != address) {
		err = room.ErrNotFound
	}
	return r, err
}

// parseReport parses the rooms of the report. The error is an [*invalid.Error] that lists all
// problems.
func parseReport(in *wire.ReportInput) ([]safetynet.Report, error) {
	if n := len(in.Rooms); n > maxReportRooms {
		return nil, invalid.Field("rooms", fmt.Sprintf("has %d elements: send at most %d", n, maxReportRooms))
	}
	p := reportParser{}
	node := p.id("node", in.Node)
	list := make([]safetynet.Report, len(in.Rooms))
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

func (p *reportParser) room(field string, in *wire.RoomReportInput) safetynet.Report {
	switch in.Mode {
	case "", "always", "scheduled", "off", "closed", "safety-net":
	default:
		p.wrong.Add(field+"mode", "must be always, scheduled, off, closed or safety-net")
	}
	out := safetynet.Report{
		Shares: in.Mode == "safety-net", TurnedAway: in.TurnedAway,
		Started: p.ids(field+"started", in.Started), Active: p.ids(field+"active", in.Active),
		Ended: p.ids(field+"ended", in.Ended),
	}
	if len(in.FailOpen) > safetynet.MaxFailOpen {
		p.wrong.Add(field+"fail_open", fmt.Sprintf("has %d elements: send at most %d", len(in.FailOpen),
			safetynet.MaxFailOpen))
		return out
	}
	for i, u := range in.FailOpen {
		field := fmt.Sprintf("%sfail_open[%d]", field, i)
		if u.From < 1 || u.From >= u.Until || u.Until > maxReportedCount || u.Requests < 0 ||
			u.Requests > maxReportedCount {
			p.wrong.Add(field, "must have from, a later until, both in milliseconds since 1970, and the number of requests")
		}
		out.FailOpen = append(out.FailOpen, pgroom.FailOpen{
			ID: p.id(field+".id", u.ID), From: u.From, Until: u.Until, Requests: u.Requests,
		})
	}
	return out
}

func (p *reportParser) ids(field string, list []string) []uuid.UUID {
	if len(list) > safetynet.MaxSessions {
		p.wrong.Add(field, fmt.Sprintf("has %d elements: send at most %d", len(list), safetynet.MaxSessions))
		return nil
	}
	ids := make([]uuid.UUID, len(list))
	for i, text := range list {
		before := len(p.wrong)
		if ids[i] = p.id(field, text); len(p.wrong) > before {
			return nil // one problem per report is enough
		}
	}
	return ids
}

func (p *reportParser) id(field, text string) (id uuid.UUID) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	isLong := len(text) != base64.RawURLEncoding.EncodedLen(len(id)) // the decoder skips line breaks
	if err != nil || len(b) != len(id) || isLong {
		p.wrong.Add(field, "must be 22 characters of base64url")
		return id
	}
	return uuid.UUID(b)
}
