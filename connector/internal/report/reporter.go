// Package report reports to the Proofline server, and applies its replies to the gates, sessions and return URLs
// of rooms.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/roomapi"
	"github.com/proofline/proofline/connector/internal/session"
	"github.com/proofline/proofline/connector/internal/token"
	"github.com/proofline/proofline/connector/rules"
)

// Intervals and limits of reports.
const (
	gateInterval = time.Second      // interval if a room is in mode safety-net
	idleInterval = 10 * time.Second // interval without such a room
	MaxReported  = 30_000           // ids in a report, to keep it below 1 MiB
	MaxRooms     = 100              // rooms in a report
	maxFailOpen  = 60               // fail-open intervals of a room in one report

	minSessionMS, maxSessionMS = 60_000, 366 * 24 * 3600_000 // accepted session lengths
)

// ErrReport is returned when the server refuses a report.
var ErrReport = errors.New("the server refused the report")

// Options configures a [Reporter].
type Options struct {
	Server              string
	Node, Kind, Version string
	Interval            time.Duration // 0: the default; negative: only at the end
	Content             func() Content
	Client              *roomapi.Client
	Token               *token.Token
	Sessions            *session.Store
	FailOpen            *reach.Unrecorded
	Unreachable         chan struct{} // signaled when the server does not respond
	Now                 func() time.Time
	Log                 *slog.Logger
}

// Reporter sends reports. It is safe for concurrent use.
type Reporter struct {
	options  Options
	now      chan struct{} // a report should be sent at once
	accepted atomic.Uint64

	mu sync.Mutex // held while a report is being sent
}

// New returns a reporter.
func New(o Options) *Reporter { return &Reporter{options: o, now: make(chan struct{}, 1)} }

// Accepted returns the number of reports that the server accepted.
func (p *Reporter) Accepted() uint64 { return p.accepted.Load() }

// Soon makes the reporter send the next report at once.
func (p *Reporter) Soon() { background.Notify(p.now) }

// First sends a first report, unless reports are sent only at the end and no gate needs
// one, and reports whether it did.
func (p *Reporter) First(ctx context.Context) bool {
	content := p.options.Content()
	if p.options.Interval < 0 && !content.hasGate() {
		return false
	}
	if _, err := p.Send(ctx, 0); err != nil {
		p.options.Log.Error("cannot send the first report", "err", err)
	}
	return true
}

// Run sends reports until ctx ends, and then the rest. hasReported says that a report has just been
// sent.
func (p *Reporter) Run(ctx context.Context, hasReported bool) {
	var before error
	if hasReported || p.options.Interval < 0 {
		p.pause(ctx)
	}
	for turn := 1; ; turn++ {
		isLast := ctx.Err() != nil
		more, err := p.Send(ctx, turn)
		switch {
		case err != nil && before == nil:
			p.options.Log.Error("cannot report to the server", "err", err)
		case err == nil && before != nil:
			p.options.Log.Info("the server accepts reports again")
		}
		if before = err; errors.Is(err, roomapi.ErrUnreachable) {
			background.Notify(p.options.Unreachable)
		}
		if isLast && (!more || err != nil) {
			return
		}
		if !more {
			p.pause(ctx)
		}
	}
}

// pause waits until the next report is due, or ctx ends.
func (p *Reporter) pause(ctx context.Context) {
	wait := p.options.Interval
	if content := p.options.Content(); wait == 0 && content.hasGate() {
		wait = gateInterval
	} else if wait == 0 {
		wait = idleInterval
	}
	if wait < 0 {
		<-ctx.Done()
		return
	}
	select {
	case <-ctx.Done():
	case <-p.now:
	case <-time.After(wait):
	}
}

// Send sends one report and applies the reply. more reports whether enough is left for another
// report at once. Errors: [roomapi.ErrUnreachable], ErrReport.
func (p *Reporter) Send(ctx context.Context, turn int) (more bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.next(turn)
	body, err := json.Marshal(said)
	if err != nil {
		return false, fmt.Errorf("write report: %w", err)
	}
	shown := p.options.Token.Current()
	defer func() { p.options.Token.Warn(p.options.Now()) }()
	req := roomapi.Request{
		Method: http.MethodPost, URL: p.options.Server + "/v1/connectors/report", Token: shown, JSON: body,
	}
	status, text, err := p.options.Client.Do(ctx, req)
	if err != nil {
		return false, err
	}
	var answer Reply
	if status != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		hint := token.Hint(status)
		return false, fmt.Errorf("report to %s: status %d%s: %w", p.options.Server, status, hint, ErrReport)
	}
	p.accepted.Add(1)
	p.options.Token.SetEnd(shown, answer.TokenEnds)
	now := p.options.Now()
	for i := range answer.Rooms {
		r := &answer.Rooms[i]
		k := slices.IndexFunc(said.Rooms, func(s RoomReport) bool { return s.Room == r.Room && !s.isAnswered })
		if k < 0 {
			continue
		}
		said.Rooms[k].isAnswered = true
		if p.apply(&said.Rooms[k], r, now) {
			more = true
		}
	}
	return more, nil
}

// apply applies the reply for one room.
func (p *Reporter) apply(said *RoomReport, r *RoomReply, now time.Time) (more bool) {
	if r.Error != "" {
		said.from.warnOnce(p.options.Log, "the server rejected this room in the report: "+r.Error)
		return false
	}
	recorded := map[id.ID]bool{}
	for _, text := range r.Recorded {
		if id, ok := id.Parse(text); ok {
			recorded[id] = true
		}
	}
	p.options.FailOpen.Drop(r.Room, recorded)
	if said.from == nil {
		return false
	}
	if key, ok := parseReturnKey(r.ReturnKey); ok {
		said.from.returns.Store(&ReturnURLs{key, r.Signed})
	}
	g := said.from.gate
	p.endSessions(g, r, now)
	more = g.Drop(said.news)
	if said.Mode != rules.SafetyNet {
		return more
	}
	n, ok := r.gateReply()
	if !ok {
		said.from.warnOnce(p.options.Log, "the server's reply has no valid gate for this room")
		return false
	}
	said.from.warnOnce(p.options.Log, "")
	if g.Update(n, r.Share, now) {
		p.options.Log.Info("gate", "room", r.Room, "is_open", n.IsOpen)
	}
	return more
}

// endSessions makes the store refuse the cookies of sessions that ended elsewhere, for as long as
// the cookies could be valid.
func (p *Reporter) endSessions(g *gate.Gate, r *RoomReply, now time.Time) {
	var over []id.ID
	until := now.UnixMilli() + gate.MaxLengths*min(max(r.SessionMS, minSessionMS), maxSessionMS)
	for _, text := range r.Ended[:min(len(r.Ended), gate.MaxIDs)] {
		if pass, ok := id.Parse(text); ok {
			p.options.Sessions.End(pass, until, now)
			over = append(over, pass)
		}
	}
	g.Forget(over)
}

// next returns the next report. The rooms take turns at being first.
func (p *Reporter) next(turn int) *Report {
	content := p.options.Content()
	s := &Report{
		Node: p.options.Node, Site: content.Site, RulesVersion: content.Version, Kind: p.options.Kind,
		Version: p.options.Version, Counts: content.Counts, Rooms: []RoomReport{},
	}
	past := p.options.FailOpen.ByRoom(maxFailOpen)
	left := MaxReported
	for i := range min(len(content.Rooms), MaxRooms) { // later reports start with the rooms left out
		from := content.Rooms[(i+turn)%len(content.Rooms)]
		r := RoomReport{Room: from.url, Mode: from.Mode, from: from.Room, FailOpen: reports(past[from.url])}
		delete(past, from.url)
		r.news = from.gate.Take(min(gate.MaxIDs, left/3))
		r.Started, r.Active, r.Ended = id.Texts(r.news.Started), id.Texts(r.news.Active), id.Texts(r.news.Ended)
		r.TurnedAway = r.news.TurnedAway
		left -= r.news.Size()
		s.Rooms = append(s.Rooms, r)
	}
	for room, list := range past {
		if len(s.Rooms) >= MaxRooms {
			break
		}
		s.Rooms = append(s.Rooms, RoomReport{Room: room, Mode: rules.Off, FailOpen: reports(list)})
	}
	return s
}

func reports(list []reach.Interval) []reach.Report {
	var texts []reach.Report
	for _, o := range list {
		texts = append(texts, o.Report())
	}
	return texts
}
