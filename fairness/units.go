package fairness

// Time is in milliseconds since the Unix epoch, 0 to 2^53-1 so that every JSON reader holds it
// exactly.
type Time int64

// Millis is a duration in milliseconds.
type Millis int64

// Never is the closing time of a room that stays open until it is ended.
const Never Time = 1<<53 - 1

// EntryIndex is the index of an entry in the transcript, from 0.
type EntryIndex uint64

// WindowIndex numbers the windows of a room's schedule from 0, empty ones
// included.
type WindowIndex uint64

// Position is a place in line, from 1, counted across all windows of a lane.
type Position uint64

// Lane is the name of one of a room's parallel lines: 1 to 32 of a-z, 0-9 and '-'.
type Lane string

// General is the name of the only lane of most rooms.
const General Lane = "general"

// Slack is how far the clock of a witness may be from the operator's for its cosignature to count.
const Slack Millis = 2000

// Limits of a policy, checked by [Policy.Problems].
const (
	MinWindow    Millis = 100                   // clock jitter would exceed a shorter window
	MaxWindow    Millis = 31 * 24 * 3600 * 1000 // 31 days
	MinClaim     Millis = 1000                  // a person needs time to tap
	MaxClaim     Millis = 24 * 3600 * 1000      // a day
	MinGrace     Millis = 1000
	MaxGrace     Millis = MaxClaim // as long as a claim: the clock stands still in no outage
	MinSession   Millis = 1000
	MaxSession   Millis = 7 * 24 * 3600 * 1000 // a week
	MaxRate      uint32 = 10_000_000           // calls per minute
	MinMargin    Millis = 5000                 // [Slack] on both sides, and a second for witnesses to cosign
	MaxMargin    Millis = 3600 * 1000          // an hour
	MinNotice    Millis = 10_000               // people need time to read
	MaxNotice    Millis = 24 * 3600 * 1000     // a day
	MaxWitnesses        = 16
	MaxLanes            = 16
	MaxMethods          = 16
	MaxLots             = 3       // methods that give a lot
	MaxSlots            = 64      // of the first window
	MaxWeight    uint32 = 100     // of a lane
	MaxParty     uint32 = 20      // seats of an arrival
	MaxRules            = 1000    // window rules
	MaxArrivals         = 1 << 29 // seats of a room's arrivals: with all lots, places are below 2^32
)
