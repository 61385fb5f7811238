package report

import (
	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/rules"
)

// Report is the body of a report: see rules/FORMAT.md.
type Report struct {
	Node         string            `json:"node"`
	Site         string            `json:"site"`
	RulesVersion uint64            `json:"rules_version"`
	Kind         string            `json:"kind"`
	Version      string            `json:"version"`
	Counts       map[string]uint64 `json:"counts"`
	Rooms        []RoomReport      `json:"rooms"`
}

// RoomReport is the part of a report about one room.
type RoomReport struct {
	Room       string         `json:"room"`
	Mode       rules.Mode     `json:"mode"`
	Started    []string       `json:"started,omitempty"`
	Active     []string       `json:"active,omitempty"`
	Ended      []string       `json:"ended,omitempty"`
	TurnedAway uint64         `json:"turned,omitempty"`
	FailOpen   []reach.Report `json:"fail_open,omitempty"`

	from       *Room     // nil: only past fail-open intervals
	news       gate.News // source of Started, Active, Ended and TurnedAway
	isAnswered bool
}

// Reply is the server's reply to a report.
type Reply struct {
	Rooms     []RoomReply `json:"rooms"`
	TokenEnds int64       `json:"token_ends"` // ms since 1970; 0: never
}

// RoomReply is the part of a reply about one room.
type RoomReply struct {
	Room      string   `json:"room"`
	Error     string   `json:"error"`
	Gate      string   `json:"gate"`
	Share     int      `json:"share"`
	PerMinute int      `json:"per_minute"`
	MaxActive int      `json:"max_active"`
	Nodes     int      `json:"nodes"`
	SessionMS int64    `json:"session_ms"`
	Recorded  []string `json:"recorded"`
	Ended     []string `json:"over"`
	ReturnKey string   `json:"return_key"`
	Signed    bool     `json:"signed_return"`
}

// gateReply returns the gate in a reply; false: it is malformed.
func (r *RoomReply) gateReply() (gate.Reply, bool) {
	n := gate.Reply{
		IsOpen: r.Gate == gate.Open, PerMinute: r.PerMinute, MaxActive: r.MaxActive,
		Nodes: max(r.Nodes, 1), Length: r.SessionMS,
	}
	isKnown := n.IsOpen || r.Gate == gate.Shut
	return n, isKnown && r.Share >= 0 && r.Share < 1<<31 && n.IsValid()
}
