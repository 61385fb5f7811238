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
	Beacon  string     `json:"beacon"` // name of the chain that decides the draws, or "none"
	Brand   Brand      `json:"brand"`
	Message *Message   `json:"message"` // nil: no message
	Awaited []struct {
		Window   uint64    `json:"window"`
		Round    uint64    `json:"round"`
		Due      time.Time `json:"due"`
		HasRound bool      `json:"has_round"`
		Cosigned []string  `json:"cosigned"`
	} `json:"awaited"` // draws waiting for the beacon or witnesses
	Size   uint64  `json:"size"` // of the transcript, in entries
	Counts *Counts `json:"counts"`
}

// Message is the organizer's message on the room's page.
type Message struct {
	Default string            `json:"default"` // language for visitors who read none of the others
	Texts   map[string]string `json:"texts"`   // by language tag
	Until   *time.Time        `json:"until"`   // nil: until the organizer takes it back
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
