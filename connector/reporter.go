package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// Intervals and limits of reports.
const (
	gateReportInterval = time.Second      // if a room is in mode safety-net
	idleReportInterval = 10 * time.Second // otherwise
	maxReported        = 30_000           // ids in a report, to keep it below 1 MiB
	maxRooms           = 100              // in a report

	minSessionMS, maxSessionMS = 60_000, 366 * 24 * 3600_000 // accepted session lengths
)

// report is the body of a report: see rules/FORMAT.md.
type report struct {
	Node         string            `json:"node"`
	Site         string            `json:"site"`
	RulesVersion uint64            `json:"rules_version"`
	Kind         string            `json:"kind"`
	Version      string            `json:"version"`
	Counts       map[string]uint64 `json:"counts"`
	Rooms        []roomReport      `json:"rooms"`
}

type roomReport struct {
	Room     string           `json:"room"`
	Mode     rules.Mode       `json:"mode"`
	Started  []string         `json:"started,omitempty"`
	Active   []string         `json:"active,omitempty"`
	Ended    []string         `json:"ended,omitempty"`
	Turned   uint64           `json:"turned,omitempty"`
	FailOpen []failOpenReport `json:"fail_open,omitempty"`

	state      *roomState // nil: only past fail-open intervals
	news       gateNews   // source of Started, Active, Ended and Turned
	isAnswered bool
}

type failOpenReport struct {
	ID       string `json:"id"`
	From     int64  `json:"from"`
	Until    int64  `json:"until"`
	Requests uint64 `json:"requests"`
}

// reportReply is the server's reply to a report.
type reportReply struct {
	Rooms     []roomReply `json:"rooms"`
	TokenEnds int64       `json:"token_ends"` // ms since 1970; 0: never
}

type roomReply struct {
	Room      string   `json:"room"`
	Error     string   `json:"error"`
	Gate      string   `json:"gate"`
	Share     int      `json:"share"`
	PerMinute int      `json:"per_minute"`
	MaxActive int      `json:"max_active"`
	Nodes     int      `json:"nodes"`
	SessionMS int64    `json:"session_ms"`
	Recorded  []string `json:"recorded"`
	Over      []string `json:"over"`
	ReturnKey string   `json:"return_key"`
	Signed    bool     `json:"signed_return"`
}

// errReport is returned when the server refuses a report.
var errReport = errors.New("the server refused the report")

// reports sends reports until ctx ends, and then the rest. hasReported: a report
// has just been sent.
func (c *Connector) reports(ctx context.Context, hasReported bool) {
	var before error
	if hasReported || c.options.reportInterval < 0 {
		c.pause(ctx, c.reportWait())
	}
	for turn := 1; ; turn++ {
		isLast := ctx.Err() != nil
		more, err := c.sendReport(ctx, turn)
		switch {
		case err != nil && before == nil:
			c.options.Log.Error("cannot report to the server", "err", err)
		case err == nil && before != nil:
			c.options.Log.Info("the server accepts reports again")
		}
		if before = err; errors.Is(err, errUnreachable) {
			notify(c.probeNow)
		}
		if isLast && (!more || err != nil) {
			return
		}
		if !more {
			c.pause(ctx, c.reportWait())
		}
	}
}

// pause waits until the next report is due; a negative wait lasts until ctx ends.
func (c *Connector) pause(ctx context.Context, wait time.Duration) {
	if wait < 0 {
		<-ctx.Done()
		return
	}
	select {
	case <-ctx.Done():
	case <-c.reportNow:
	case <-time.After(wait):
	}
}

func (c *Connector) reportWait() time.Duration {
	switch {
	case c.options.reportInterval != 0:
		return c.options.reportInterval
	case c.hasGate():
		return gateReportInterval
	}
	return idleReportInterval
}

// hasGate reports whether a room is in mode safety-net.
func (c *Connector) hasGate() bool {
	for _, r := range c.current.Load().site.Rooms {
		if r.Mode == rules.SafetyNet {
			return true
		}
	}
	return false
}

// sendReport sends one report and applies the reply. more: there is enough left
// for another report at once. Errors: errUnreachable, errReport.
func (c *Connector) sendReport(ctx context.Context, turn int) (more bool, err error) {
	c.reporting.Lock()
	defer c.reporting.Unlock()
	said := c.newReport(turn)
	body, err := json.Marshal(said)
	if err != nil {
		return false, fmt.Errorf("write report: %w", err)
	}
	token := c.bearer.current()
	defer func() { c.bearer.warn(c.options.Now()) }()
	req := request{method: http.MethodPost, url: c.options.Server + "/v1/connectors/report", token: token, json: body}
	status, text, err := c.exchange(ctx, req)
	if err != nil {
		return false, err
	}
	var answer reportReply
	if status != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		return false, fmt.Errorf("report to %s: status %d%s: %w", c.options.Server, status, hintOf(status), errReport)
	}
	c.counts.reports.Add(1)
	c.bearer.setEnd(token, answer.TokenEnds)
	now := c.options.Now()
	for i := range answer.Rooms {
		r := &answer.Rooms[i]
		k := slices.IndexFunc(said.Rooms, func(s roomReport) bool { return s.Room == r.Room && !s.isAnswered })
		if k < 0 {
			continue
		}
		said.Rooms[k].isAnswered = true
		if c.takeReply(&said.Rooms[k], r, now) {
			more = true
		}
	}
	return more, nil
}

// takeReply applies the reply for one room.
func (c *Connector) takeReply(said *roomReport, r *roomReply, now time.Time) (more bool) {
	if r.Error != "" {
		c.warnOnce(said.state, "the server rejected this room in the report: "+r.Error)
		return false
	}
	recorded := map[[16]byte]bool{}
	for _, text := range r.Recorded {
		if id, ok := parseID(text); ok {
			recorded[id] = true
		}
	}
	if c.unrecorded.drop(r.Room, recorded) {
		notify(c.saved.changed)
	}
	if said.state == nil {
		return false
	}
	if key, ok := parseReturnKey(r.ReturnKey); ok {
		said.state.returns.Store(&returnSigning{key, r.Signed})
	}
	g := &said.state.gate
	c.takeEnded(g, r, now)
	more = g.drop(said.news)
	if said.Mode != rules.SafetyNet {
		return more
	}
	n, ok := r.gateReply()
	if !ok {
		c.warnOnce(said.state, "the server's reply has no valid gate for this room")
		return false
	}
	c.warnOnce(said.state, "")
	if g.update(n, r.Share, now) {
		c.options.Log.Info("gate", "room", r.Room, "is_open", n.isOpen)
	}
	return more
}

// takeEnded refuses the cookies of sessions that ended elsewhere, for as long as
// the cookies could be valid.
func (c *Connector) takeEnded(g *gate, r *roomReply, now time.Time) {
	var over [][16]byte
	till := now.UnixMilli() + maxLengths*min(max(r.SessionMS, minSessionMS), maxSessionMS)
	for _, text := range r.Over[:min(len(r.Over), maxReportIDs)] {
		if id, ok := parseID(text); ok {
			c.ended.add(id, till, now.UnixMilli())
			over = append(over, id)
		}
	}
	g.forget(over)
}

// warnOnce logs a complaint about the server's replies, unless it is the same as
// the last one. Empty: all is well.
func (c *Connector) warnOnce(st *roomState, what string) {
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if what != "" && what != st.lastWarning {
		c.options.Log.Error(what, "room", st.url)
	}
	st.lastWarning = what
}

// gateReply returns the gate in a reply; false: it is malformed.
func (r *roomReply) gateReply() (gateReply, bool) {
	n := gateReply{
		isOpen: r.Gate == GateOpen, perMinute: r.PerMinute, maxActive: r.MaxActive,
		nodes: max(r.Nodes, 1), length: r.SessionMS,
	}
	const most = 1 << 31
	isFine := (n.isOpen || r.Gate == GateShut) && r.Share >= 0 && r.Share < most &&
		n.perMinute > 0 && n.perMinute < most && n.maxActive >= 0 && n.maxActive < most &&
		n.nodes < most && n.length > 0 && n.length < maxSessionMS
	return n, isFine
}

// newReport returns the next report. The rooms take turns at being first.
func (c *Connector) newReport(turn int) *report {
	now := c.current.Load()
	s := &report{
		Node: c.node, Site: now.name, RulesVersion: now.version, Kind: c.options.Kind, Version: c.options.Version,
		Counts: c.counts.byName(), Rooms: []roomReport{},
	}
	now.addObserved(s.Counts, c.options.Now())
	modes := map[*roomState]rules.Mode{}
	for _, rm := range now.rooms {
		if modes[rm.state] != rules.SafetyNet {
			modes[rm.state] = rm.Mode
		}
	}
	past := c.unrecorded.byRoom(maxReportedFailOpen)
	left := maxReported
	for i := range min(len(now.states), maxRooms) { // later reports start with the rooms left out
		st := now.states[(i+turn)%len(now.states)]
		r := roomReport{Room: st.url, Mode: modes[st], state: st, FailOpen: failOpenReports(past[st.url])}
		delete(past, st.url)
		r.news = st.gate.take(min(maxReportIDs, left/3))
		r.Started, r.Active, r.Ended, r.Turned = ids(r.news.started), ids(r.news.active), ids(r.news.ended), r.news.turned
		if left -= r.news.size(); r.Mode == "" { // no longer in the rules
			r.Mode = rules.Off
		}
		s.Rooms = append(s.Rooms, r)
	}
	for room, list := range past {
		if len(s.Rooms) >= maxRooms {
			break
		}
		s.Rooms = append(s.Rooms, roomReport{Room: room, Mode: rules.Off, FailOpen: failOpenReports(list)})
	}
	return s
}

func ids(list [][16]byte) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = idText(id)
	}
	return texts
}

func failOpenReports(list []FailOpen) []failOpenReport {
	var texts []failOpenReport
	for _, o := range list {
		from, until := o.From.UnixMilli(), o.Until.UnixMilli()
		texts = append(texts, failOpenReport{idText(o.id), from, max(until, from+1), o.Requests})
	}
	return texts
}

// modulePath is the path of this module.
const modulePath = "github.com/proofline/proofline"

// ownVersion returns the version of this module in the running program.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == modulePath {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return "unknown"
}
