package wire

import (
	"time"

	"github.com/proofline/proofline/room"
)

// QueueIt is a room's compatibility with Queue-it connectors.
type QueueIt struct {
	Enabled    bool   `json:"enabled"`
	CustomerID string `json:"customer_id" doc:"Customer ID of links that open the room."`
	Extend     bool   `json:"extend" doc:"Whether the site's configuration determines how long visitors stay; if not, they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Whether visitors get a pass as well."`
}

// QueueItInput changes it.
type QueueItInput struct {
	CustomerID string `json:"customer_id" need:"true" doc:"Customer ID of links that open the room: 1 to 63 of A-Z, a-z, 0-9 and -."`
	SecretKey  string `json:"secret_key" doc:"Key that signs tokens, the same as in the site's connector: 32 to 200 visible ASCII characters. It is stored sealed and never shown. If it is missing, the previous key stays."`
	Extend     bool   `json:"extend" doc:"Let the site's configuration determine how long visitors stay. Default: they stay as long as their passes are valid."`
	WithPass   bool   `json:"with_pass" doc:"Give visitors a pass as well, for a site that is moving to a Proofline connector."`
}

// Room is a room as its organizer sees it.
type Room struct {
	room.Config
	Host         *string       `json:"host" doc:"Custom host that the room is published under; null: the server's own host."`
	Origin       string        `json:"origin" doc:"Name of the room's log."`
	URL          string        `json:"url" doc:"URL of the room."`
	VKey         string        `json:"vkey" doc:"Key that verifies the log's checkpoints (C2SP signed note)."`
	Phase        room.Phase    `json:"phase"`
	Created      time.Time     `json:"created"`
	Size         uint64        `json:"size" doc:"Number of entries in the transcript."`
	Counts       Counts        `json:"counts"`
	Message      *room.Message `json:"message" doc:"Message shown to visitors now; null: none."`
	ClaimsFrozen bool          `json:"claims_frozen" doc:"Whether claims are frozen: called visitors cannot claim for now, and their claim time stands still."`
	Awaited      []Awaited     `json:"awaited" doc:"Draws that wait for the beacon or for witnesses."`
	Work         *Work         `json:"work,omitempty" doc:"Beacon round that joins do work for; missing: no method is work."`
}

// Awaited is a draw that waits for the beacon or for witnesses.
type Awaited struct {
	Window   uint64    `json:"window"`
	Round    uint64    `json:"round" doc:"Number of the beacon's round."`
	Due      time.Time `json:"due" doc:"Time at which the round appears."`
	HasRound bool      `json:"has_round" doc:"Whether the server has the round."`
	Cosigned []string  `json:"cosigned" doc:"Names of the witnesses that have signed."`
}

// Counts counts the visitors and entries of a room.
type Counts struct {
	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn" doc:"Number of arrivals in drawn windows."`
	Assigned uint64 `json:"assigned" doc:"Places."`
	Called   uint64 `json:"called" doc:"Number of visitors with a place up to the latest that is called, including those who left."`
	Ready    uint64 `json:"ready" doc:"Number of visitors with a place who are neither called nor skipped."`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	Left     uint64 `json:"left" doc:"Number of visitors who gave up their places."`
	TooLarge uint64 `json:"too_large" doc:"Number of parties skipped because too few seats were left."`
	Revoked  uint64 `json:"revoked"`
	Waiting  uint64 `json:"waiting" doc:"Visitors who are called, can still claim, and have not yet."`
	InLine   uint64 `json:"in_line" doc:"Number of visitors neither called nor skipped."`
	Windows  uint64 `json:"windows" doc:"Number of windows with arrivals."`
	Amends   uint64 `json:"amends"`
	Seats    uint64 `json:"seats" doc:"Number of seats of all arrivals."`
	Held     uint64 `json:"held" doc:"Number of seats of called visitors who can still claim."`
	Sold     uint64 `json:"sold" doc:"Number of seats of admitted visitors."`
}

// Summary is a room in a list. The logs of rooms that have ended are not read for it.
type Summary struct {
	Slug     string     `json:"slug"`
	Title    string     `json:"title"`
	URL      string     `json:"url"`
	Host     *string    `json:"host"`
	Phase    room.Phase `json:"phase"`
	Created  time.Time  `json:"created"`
	Ended    *time.Time `json:"ended"`
	Archived *time.Time `json:"archived"`
	Counts   *Counts    `json:"counts,omitempty" doc:"Missing for rooms that have ended or stopped."`
}

// RoomList is a page of the list of rooms.
type RoomList struct {
	Rooms []Summary `json:"rooms"`
	Next  *string   `json:"next" doc:"Cursor of the next page; null on the last page."`
}

// CreateInput is a new room's configuration and host.
type CreateInput struct {
	room.Config
	Host string `json:"host" doc:"Custom host of the organization to publish the room under. It cannot be changed later."`
}

// AmendInput is the body of an amendment: the settings that may change, and the message.
type AmendInput struct {
	room.Config
	Message *room.MessageChange `json:"message"`
}

// CodesInput asks for codes for a method of a room.
type CodesInput struct {
	Count int `json:"count" need:"true" doc:"How many codes to make, 1 to 100,000."`
}

// CodeBatches are the codes of a method.
type CodeBatches struct {
	Batches []CodeBatch `json:"batches" doc:"From the oldest. The number of a batch is its place here, from 1."`
}

// CodeBatch counts codes that were made at once.
type CodeBatch struct {
	Made   time.Time `json:"made"`
	Unused int       `json:"unused"`
	Used   int       `json:"used"`
	Void   int       `json:"void"`
}

// VoidInput names codes to void: a batch or some codes.
type VoidInput struct {
	Batch int      `json:"batch" doc:"Number of a batch, from 1, in place of codes."`
	Codes []string `json:"codes" doc:"At most 100,000 codes, in place of a batch."`
	Check bool     `json:"check" doc:"Only count the codes."`
}

// Voided counts the codes of a request to void them.
type Voided struct {
	Voided  int `json:"voided" doc:"Number of codes that were unused, and are void now; with check, would be."`
	Used    int `json:"used" doc:"Number of codes that were used before: their visitors stay confirmed."`
	Before  int `json:"before" doc:"Number of codes that were void before."`
	Unknown int `json:"unknown" doc:"Number of codes that the method does not have, or that repeat another one."`
}

// Codes are new codes, each of which confirms one visitor.
type Codes struct {
	Codes []string `json:"codes" doc:"The only copy: the server keeps keyed hashes."`
	Total int      `json:"total" doc:"Number of codes that were ever made for the method."`
}
