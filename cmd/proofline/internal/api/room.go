package api

import "time"

// Room is a room in the management API.
type Room struct {
	Slug    string     `json:"slug"`
	Title   string     `json:"title"`
	URL     string     `json:"url"` // of the room's page and transcript
	VKey    string     `json:"vkey"`
	Phase   string     `json:"phase"`
	Created time.Time  `json:"created"`
	Opens   time.Time  `json:"opens"`
	Starts  time.Time  `json:"starts"`
	Closes  *time.Time `json:"closes"` // end of joining; nil: never
	Windows []struct {
		From   time.Time `json:"from"`
		Length string    `json:"length"`
	} `json:"windows"`
	Outflow Outflow  `json:"outflow"`
	Claim   string   `json:"claim"`
	Session string   `json:"session"`
	Beacon  string   `json:"beacon"`  // hash of the chain that decides the draws, or "none"
	Margin  string   `json:"margin"`  // minimum time from a freeze to its round
	Quorum  uint32   `json:"quorum"`  // witnesses that should cosign a freeze
	Message *Message `json:"message"` // nil: no message
	Awaited []struct {
		Window   uint64    `json:"window"`
		Round    uint64    `json:"round"`
		Due      time.Time `json:"due"`
		HasRound bool      `json:"has_round"`
		Cosigned []string  `json:"cosigned"`
	} `json:"awaited"` // draws waiting for the beacon or witnesses
	Settings
	Size   uint64  `json:"size"` // of the transcript, in entries
	Counts *Counts `json:"counts"`
}

// Message is the organizer's message on the room's page.
type Message struct {
	Default string            `json:"default"` // language for visitors who read none of the others
	Texts   map[string]string `json:"texts"`   // by language tag
	Until   *time.Time        `json:"until"`   // nil: until the organizer takes it back
}

// Outflow is the published pace of admissions.
type Outflow struct {
	PerMinute uint32 `json:"per_minute"`
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// Settings are the parts of a room that can change and are not in its transcript.
type Settings struct {
	Targets      []string `json:"targets"`       // URLs that admitted visitors may be sent to
	SignedReturn bool     `json:"signed_return"` // only to URLs that a connector has signed
	Brand        Brand    `json:"brand"`
	MaxWaiting   uint32   `json:"max_waiting"` // visitors in line at once; 0: no limit
	TimeZone     string   `json:"time_zone"`   // of the event; empty: UTC
}

// Brand is the look of a room's pages. It is a map so that commands can change some
// members and send the others back unchanged.
type Brand map[string]any

// Counts sum up a room.
type Counts struct {
	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn"`
	Assigned uint64 `json:"assigned"`
	Called   uint64 `json:"called"`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	Waiting  uint64 `json:"waiting"`
}

// Draft is a room that is not published.
type Draft struct {
	ID       string    `json:"id"`
	Slug     string    `json:"slug"`
	Title    string    `json:"title"`
	Changed  time.Time `json:"changed"`
	By       string    `json:"changed_by"`
	Problems []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"problems"` // to mend before publishing
}

// Token is a token of the management API, without its secret.
type Token struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes"`
	MadeBy  string     `json:"made_by"`
	Expires time.Time  `json:"expires"`
	Used    *time.Time `json:"used"`   // nil: never
	Notice  string     `json:"notice"` // "soon", "last" or "ended" if a token in use expires; else empty
}
