package wire

import "github.com/proofline/proofline/room/session"

// Keys lists the keys of a room's passes.
type Keys struct {
	ID   string            `json:"kid" doc:"ID of the key that signs from now on."`
	Keys []session.PassKey `json:"keys" doc:"Keys of all valid passes, newest first."`
}

// Calls sets what calls a room's visitors.
type Calls struct {
	By string `json:"by" enum:"rate,pull" need:"true" doc:"rate: the room's clock calls visitors at the pace of the outflow; pull: a backend calls them, up to that pace."`
}

// Values of [Calls].By.
const (
	ByRate = "rate" // the room's clock, at the pace of the outflow
	ByPull = "pull" // a backend, up to that pace
)

// Pulled is the result of a pull.
type Pulled struct {
	Called  uint64 `json:"called" doc:"Number of visitors called by this pull."`
	UpTo    uint64 `json:"up_to" doc:"Position up to which visitors are called now."`
	Waiting uint64 `json:"waiting" doc:"Visitors who are called, can still claim, and have not yet."`
	Active  uint64 `json:"active" doc:"Waiting visitors, plus those at the site."`
}
