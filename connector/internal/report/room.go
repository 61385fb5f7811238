package report

import (
	"log/slog"
	"sync/atomic"

	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/rules"
)

// Room holds what replies to reports say about a room.
type Room struct {
	url     string
	gate    *gate.Gate
	returns atomic.Pointer[ReturnURLs] // nil: not received yet

	lastWarning string // last complaint that was logged about the server's replies
}

// NewRoom returns a room without a reply. Its gate is updated by replies.
func NewRoom(url string, g *gate.Gate) *Room { return &Room{url: url, gate: g} }

// ReturnURLs returns what the server says about return URLs; nil: not known yet.
func (r *Room) ReturnURLs() *ReturnURLs { return r.returns.Load() }

// warnOnce logs a complaint about the server's replies, unless it is the same as the last one. An
// empty complaint means that the replies are valid.
func (r *Room) warnOnce(log *slog.Logger, what string) {
	if r == nil {
		return
	}
	if what != "" && what != r.lastWarning {
		log.Error(what, "room", r.url)
	}
	r.lastWarning = what
}

// Content is what a connector reports besides fail-open intervals.
type Content struct {
	Site    string // name of the site of signed rules; empty: not signed
	Version uint64 // version of signed rules; 0: not signed
	Counts  map[string]uint64
	Rooms   []RoomContent // each room once
}

// RoomContent is a room with its mode in the rules.
type RoomContent struct {
	*Room
	Mode rules.Mode
}

// hasGate reports whether a room is in mode safety-net.
func (c *Content) hasGate() bool {
	for _, r := range c.Rooms {
		if r.Mode == rules.SafetyNet {
			return true
		}
	}
	return false
}
