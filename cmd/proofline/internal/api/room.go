package api

import "time"

// Room is a room as its organizer sees it.
type Room struct {
	Slug    string     `json:"slug"`
	Title   string     `json:"title"`
	URL     string     `json:"url"` // where it is published
	VKey    string     `json:"vkey"`
	Phase   string     `json:"phase"`
	Created time.Time  `json:"created"`
	Opens   time.Time  `json:"opens"`
	Starts  time.Time  `json:"starts"`
	Closes  *time.Time `json:"closes"` // nil: never
	Windows []struct {
		From   time.Time `json:"from"`
		Length string    `json:"length"`
	} `json:"windows"`
	Outflow Outflow  `json:"outflow"`
	Claim   string   `json:"claim"`
	Session string   `json:"session"`
	Beacon  string   `json:"beacon"`  // "none", or whose rounds decide the draws
	Margin  string   `json:"margin"`  // from a freeze to its round, at least
	Quorum  uint32   `json:"quorum"`  // witnesses who should sign a freeze
	Message *Message `json:"message"` // nil: visitors are told nothing
	Awaited []struct {
		Window   uint64    `json:"window"`
		Round    uint64    `json:"round"`
		Due      time.Time `json:"due"`
		HasRound bool      `json:"has_round"`
		Cosigned []string  `json:"cosigned"`
	} `json:"awaited"` // draws that wait for beacon or witnesses
	Settings
	Size   uint64  `json:"size"` // entries of the transcript
	Counts *Counts `json:"counts"`
}

// Message is what visitors are told.
type Message struct {
	Default string            `json:"default"` // language of the text for visitors who read none of the others
	Texts   map[string]string `json:"texts"`   // by language tag
	Until   *time.Time        `json:"until"`   // nil: until it is taken back
}

// Outflow is how fast people are let in.
type Outflow struct {
	PerMinute uint32 `json:"per_minute"`
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// Settings are what a room's pages show and where they lead.
type Settings struct {
	Targets      []string `json:"targets"`       // where admitted visitors may be sent
	SignedReturn bool     `json:"signed_return"` // only where a connector has signed it
	Brand        Brand    `json:"brand"`
	MaxWaiting   uint32   `json:"max_waiting"` // people in line at once, 0: no limit
	TimeZone     string   `json:"time_zone"`   // of the event, empty for UTC
}

// Brand is what a room's pages look like, by member: these commands change a
// few of them and leave the others as they are.
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
	} `json:"problems"` // what keeps it from being published
}

// Token is a token of the management API, without its secret.
type Token struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes"`
	MadeBy  string     `json:"made_by"`
	Expires time.Time  `json:"expires"`
	Used    *time.Time `json:"used"`   // nil: never
	Notice  string     `json:"notice"` // in use, and soon, last or ended; empty: nothing is to be said of its end
}
