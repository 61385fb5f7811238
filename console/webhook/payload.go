package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/proofline/proofline/fairness"
)

// payload is the body of a webhook.
type payload struct {
	Type      EventKind `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"`
}

// event is an event in a room.
type event struct {
	kind EventKind
	at   time.Time
	data any
}

// text returns the body of the delivery. Its time has millisecond precision, like that of entries.
func (e *event) text() (string, error) {
	b, err := json.Marshal(payload{e.kind, e.at.UTC().Truncate(time.Millisecond), e.data})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.kind, err)
	}
	return string(b), nil
}

// where identifies the room of an event. The data of every event begins with it.
type where struct {
	Room string `json:"room"` // slug
	URL  string `json:"url"`  // URL of the room's page and transcript
	// IsRehearsal reports whether the visitors are synthetic.
	IsRehearsal bool `json:"rehearsal,omitempty"`
}

// opened is the data of room.opened.
type opened struct {
	where
	Opens time.Time `json:"opens"`
}

// drawn is the data of room.window_drawn.
type drawn struct {
	where
	Windows []drawnWindow `json:"windows"`
}

type drawnWindow struct {
	Entry  uint64               `json:"entry"` // index in the transcript
	At     time.Time            `json:"at"`
	Window fairness.WindowIndex `json:"window"`
	// visitors in the window; missing if its freeze was not followed, and in a room with slots or lots
	People       *uint32 `json:"people,omitempty"`
	Cosignatures int     `json:"cosignatures"` // witnesses that signed in time
	Seed         string  `json:"seed"`         // hex
}

// called is the data of room.called.
type called struct {
	where
	Entry  uint64            `json:"entry"`
	UpTo   fairness.Position `json:"up_to"`
	People *uint64           `json:"people,omitempty"` // visitors newly called; missing in a room with slots or lots
}

// admitted is the data of room.admitted.
type admitted struct {
	where
	People  int              `json:"people"`
	Tickets []admittedTicket `json:"tickets"`
}

type admittedTicket struct {
	Entry  uint64    `json:"entry"`
	At     time.Time `json:"at"`
	Ticket string    `json:"ticket"`
	Pass   string    `json:"pass"` // the pass's id (jti), which admits no visitor
}

// revoked is the data of room.revoked.
type revoked struct {
	where
	People  int             `json:"people"`
	Tickets []revokedTicket `json:"tickets"`
}

type revokedTicket struct {
	Entry  uint64    `json:"entry"`
	At     time.Time `json:"at"`
	Ticket string    `json:"ticket"`
}

// failOpen is the data of site.fail_open.
type failOpen struct {
	where
	Times []failOpenTime `json:"times"`
}

type failOpenTime struct {
	Entry    uint64    `json:"entry"`
	At       time.Time `json:"at"` // time of recording
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Requests uint64    `json:"requests"` // requests let in
}

// moment is the data of room.resumed, room.ended, gate.opened and gate.shut.
type moment struct {
	where
	Entry uint64    `json:"entry"`
	At    time.Time `json:"at"`
}

// paused is the data of room.paused.
type paused struct {
	moment
	ClaimsFrozen bool `json:"claims_frozen"` // claims are stopped, too
}

// amended is the data of room.amended.
type amended struct {
	where
	Changes []change `json:"changes"`
}

type change struct {
	Entry   uint64          `json:"entry"`
	At      time.Time       `json:"at"`
	Change  fairness.Change `json:"change"` // outflow, seats, message or windows
	Outflow *outflow        `json:"outflow,omitempty"`
	Seats   uint32          `json:"seats,omitempty"`
	Message string          `json:"message,omitempty"` // SHA-256 of its canonical form, hex
	Closes  *time.Time      `json:"closes,omitempty"`  // given with windows; missing: never
}

type outflow struct {
	PerMinute uint32 `json:"per_minute"`
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// late is the data of room.beacon_late.
type late struct {
	where
	Window fairness.WindowIndex `json:"window"`
	Round  uint64               `json:"round"`
	Due    time.Time            `json:"due"`
}

// fork is the data of room.fork_seen.
type fork struct {
	where
	Witness string `json:"witness"`
	Detail  string `json:"detail"`
}

// ping is the data of test.ping.
type ping struct {
	Text string `json:"text"`
}

// alerted is the data of an alert.
type alerted struct {
	Kind        AlertKind `json:"kind"`
	Title       string    `json:"title"`
	Room        string    `json:"room,omitempty"`
	URL         string    `json:"url,omitempty"`
	IsRehearsal bool      `json:"rehearsal,omitempty"`
	Text        string    `json:"text"`
}
