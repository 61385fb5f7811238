package wire

import (
	"time"

	"github.com/google/uuid"
)

// Rehearsal is the state of a rehearsal. Numbers count simulated visitors.
type Rehearsal struct {
	Slug     string        `json:"slug" doc:"Slug of the copy."`
	Title    string        `json:"title"`
	URL      string        `json:"url" doc:"Address at which people can join it, too."`
	Of       *uuid.UUID    `json:"of" doc:"ID of the room or draft that it rehearses."`
	Started  time.Time     `json:"started"`
	Opens    time.Time     `json:"opens"`
	Starts   time.Time     `json:"starts"`
	Ends     time.Time     `json:"ends" doc:"Latest end, or the actual end once it is over."`
	Over     bool          `json:"over"`
	Visitors int           `json:"visitors"`
	Joined   int           `json:"joined"`
	Called   int           `json:"called"`
	Admitted int           `json:"admitted"`
	Missed   int           `json:"missed" doc:"Number of visitors that were called but did not claim."`
	Left     int           `json:"left"`
	Failed   int           `json:"failed" doc:"Number of visitors that could not join."`
	Script   *ScriptResult `json:"script" doc:"What a script got; null: there is none. The other numbers do not count it."`
}

// ScriptResult is a script's attempt at the first places of a rehearsal.
type ScriptResult struct {
	Tickets   int      `json:"tickets" doc:"Number of tickets that it asks for."`
	Networks  int      `json:"networks" doc:"Number of networks that its joins come from."`
	Lane      string   `json:"lane" doc:"The lane that is the easiest to get into, which it joins."`
	Needs     []string `json:"needs" doc:"Methods that the lane needs."`
	Holds     int      `json:"holds" doc:"Number of accounts or codes that it has; 0: it needs none."`
	Joined    int      `json:"joined"`
	Refused   Refused  `json:"refused" doc:"Number of joins that were refused, by reason."`
	First     int      `json:"first" doc:"Number of first places of the lane that are compared."`
	Drawn     int      `json:"drawn" doc:"How many of these simulated visitors and the script have got."`
	Ahead     int      `json:"ahead" doc:"How many of these the script has got."`
	Predicted float64  `json:"predicted" doc:"Its share of the first places in the simulator, which knows windows and the door."`
}

// Refused counts the refused joins of a script.
type Refused struct {
	Account int `json:"account" doc:"The account or code had a place."`
	Limit   int `json:"limit" doc:"There were no more codes, or the method took no more of them."`
	Network int `json:"network" doc:"The network had reached its limit."`
	Late    int `json:"late" doc:"The room took no more joins."`
}

// RehearsalList lists rehearsals.
type RehearsalList struct {
	Rehearsals []Rehearsal `json:"rehearsals"`
}

// RehearsalInput describes the crowd of a rehearsal.
type RehearsalInput struct {
	Visitors  int    `json:"visitors" doc:"Number of simulated visitors, from 10 to 2000. Default: 200."`
	PerMinute uint32 `json:"per_minute" doc:"Visitors called a minute. Default: 0, as many as in the room."`
	Script    int    `json:"script" doc:"Number of tickets that a script asks for in addition, up to 2000. Default: 0, no script."`
	Networks  int    `json:"networks" doc:"Number of networks that the script's joins come from, up to 1000. Default: 1."`
}
