package wire

import (
	"time"

	"github.com/proofline/proofline/room"
)

// The server writes the documents of this file without reflection: web/join.go, web/ticket.go, web/state.go,
// web/door.go.

// Joined is the answer to a join.
type Joined struct {
	Ticket     string    `json:"ticket"`
	Index      uint64    `json:"index"` // index of the arrive entry
	Window     uint64    `json:"window"`
	WindowFrom time.Time `json:"window_from"`
	WindowTo   time.Time `json:"window_to"`
	Seq        uint32    `json:"seq"`
	Time       time.Time `json:"time"`
	Receipt    string    `json:"receipt"`
	Secret     string    `json:"secret"` // base64url; empty unless the server made the ticket
}

// Place is the state of a ticket, as visitors see it.
type Place struct {
	Ticket     string    `json:"ticket"`
	Index      uint64    `json:"index"` // index of the arrive entry
	Window     uint64    `json:"window"`
	WindowFrom time.Time `json:"window_from"`
	WindowTo   time.Time `json:"window_to"`
	Seq        uint32    `json:"seq"`
	Time       time.Time `json:"time"`
	Lane       string    `json:"lane"`
	Seats      uint32    `json:"seats"` // of a party; 0: one
	Slot       *uint32   `json:"slot"`  // slot of the first window, from 0; nil: the window has none
	Status     string    `json:"status"`
	Reason     string    `json:"reason"`   // reason of a skip; empty: not skipped
	Appeal     string    `json:"appeal"`   // revoked: mail address or URL to turn to; empty: the room names none
	Position   *uint64   `json:"position"` // nil: not drawn yet
	Ahead      Ahead     `json:"ahead"`
	ETA        *struct {
		Earliest, Latest time.Time // Latest is zero while visitors can still join the window
	} `json:"eta"`
	ClaimBy *time.Time `json:"claim_by"` // deadline of a called ticket; nil while the room is paused
	LeftMS  *int64     `json:"left_ms"`  // time left to claim a called ticket
	// ExtendMS is how much more time the visitor of a called ticket may ask for, once; nil: none, or no more.
	ExtendMS *int64     `json:"extend_ms"`
	Settled  *time.Time `json:"settled"`
	Poll     int64      `json:"poll_after_ms"`
}

// Pass is the answer to a claim.
type Pass struct {
	Ticket   string    `json:"ticket"`
	Pass     string    `json:"pass"` // JWT
	PassID   string    `json:"pass_id"`
	Expires  time.Time `json:"expires"`
	Position uint64    `json:"position"`
	Lane     string    `json:"lane"`
	Location *string   `json:"location"` // URL to visit next, with the pass; nil: the room has no targets
}

// Session is the answer of requests that redeem a pass, or touch or release a session.
type Session struct {
	PassID     string    `json:"pass_id"`
	Ticket     string    `json:"ticket"`
	Position   uint64    `json:"position"`
	Lane       string    `json:"lane"`
	Ends       time.Time `json:"ends"`
	EndsAtMost time.Time `json:"ends_at_most"`
}

// State is the public state of a room.
type State struct {
	Slug         string     `json:"slug"`
	Title        string     `json:"title"`
	Origin       string     `json:"origin"`
	VKey         string     `json:"vkey"`
	Phase        string     `json:"phase"`
	Now          time.Time  `json:"now"`
	Opens        time.Time  `json:"opens"`
	Starts       time.Time  `json:"starts"`
	TimeZone     string     `json:"time_zone"` // empty: UTC
	Closes       *time.Time `json:"closes"`    // nil: never
	Paused       bool       `json:"paused"`
	ClaimsFrozen bool       `json:"claims_frozen"`
	Withdrawn    *struct {  // nil: no ticket was revoked
		Count  uint64   `json:"count"`
		Latest []string `json:"latest"`
	} `json:"withdrawn"`
	Full     bool          `json:"full"`
	Gate     string        `json:"gate"` // empty: the room has none
	Message  *room.Message `json:"message"`
	Size     uint64        `json:"size"` // number of entries in the transcript
	Arrivals uint64        `json:"arrivals"`
	Outflow  struct {
		PerMinute uint32 `json:"per_minute"`
		MaxActive uint32 `json:"max_active"`
		// Free and the fields after it are nil unless max_active limits the calls.
		Free  *uint64    `json:"free"`
		First *time.Time `json:"first_free"`
		Freed *float64   `json:"freed_per_minute"`
		By    string     `json:"by"` // [ByPull], or empty
	} `json:"outflow"`
	Seats *struct { // nil: any number
		Total, Called, Admitted uint64
	} `json:"seats"`
	Party   uint32   `json:"party"`   // seats that a visitor may join for; 0: one
	Entry   string   `json:"entry"`   // SHA-256 of the room entry, in hex; empty: the room has no methods
	Methods []Method `json:"methods"` // in the order of the policy
	Work    *Work    `json:"work"`    // nil: no method is work
	Window  *Window  `json:"window"`  // the open window
	Windows []Window `json:"windows"` // the latest windows with arrivals
	Slots   *Slots   `json:"slots"`   // nil: the first window has none, or is drawn
	Lanes   map[string]struct {
		Weight                                                        uint32
		Needs                                                         []string // names of methods
		Arrivals, Drawn, Assigned, Called, Admitted, Skipped, Waiting uint64
		// tickets among the places called; nil: all of them
		Passed *uint64
	} `json:"lanes"`
	Poll struct {
		AfterMS int64   `json:"after_ms"`
		MostMS  int64   `json:"most_ms"`
		RestMS  int64   `json:"rest_ms"`
		Jitter  float64 `json:"jitter"`
		Listen  uint64  `json:"listen_ahead"`
	} `json:"poll"`
}

// Slots are the slots of a room's first window. What a quiet slot is worth is in section 9 of fairness/RULES.md.
type Slots struct {
	LengthMS int64               `json:"length_ms"` // the last slot may be shorter
	Lots     map[string][]uint32 `json:"lots"`      // by lane and slot
}

// Method is a way to show something about a visitor.
type Method struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`  // work, signed or blind
	Bits  uint8  `json:"bits"`  // of work
	Key   string `json:"key"`   // of an issuer, in hex
	Limit uint32 `json:"limit"` // credentials of an issuer that the room takes; 0: any number
	Taken uint32 `json:"taken"` // credentials so far
}

// Work is the beacon round that work is done for.
type Work struct {
	Round     uint64    `json:"round" doc:"Number of the beacon's round."`
	Due       time.Time `json:"due" doc:"Time at which the round appears."`
	Signature *string   `json:"signature" doc:"Signature of the round, in hex; null: not in the transcript yet, so that nobody can join with work."`
}

// Merit is the answer to a credential that a ticket shows after its arrival.
type Merit struct {
	Ticket  string `json:"ticket"`
	Method  string `json:"method"`
	Index   uint64 `json:"index"`   // index of the merit entry, or of the arrive entry if that shows the method
	Receipt string `json:"receipt"` // of that entry
}

// Window is a window in the state of a room. The open one has only the first four members.
type Window struct {
	Index    uint64    `json:"index"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Arrivals uint32    `json:"arrivals"`
	Frozen   bool      `json:"frozen"`
	Drawn    bool      `json:"drawn"`
	Draws    time.Time `json:"draws"`
	First    *uint64   `json:"first_position"` // nil: not drawn yet
}
