package wire

import (
	"time"

	"github.com/proofline/proofline/fairness"
)

// Ticket is the state of a ticket.
type Ticket struct {
	Ticket     string          `json:"ticket"`
	Index      uint64          `json:"index" doc:"Index of its arrival in the transcript."`
	Joined     time.Time       `json:"joined"`
	Window     uint64          `json:"window"`
	WindowFrom time.Time       `json:"window_from"`
	WindowTo   time.Time       `json:"window_to"`
	Seq        uint32          `json:"seq" doc:"Number of the arrival within its window."`
	Lane       string          `json:"lane"`
	Seats      uint32          `json:"seats" doc:"Number of seats that it joined for."`
	Status     fairness.Status `json:"status"`
	Reason     fairness.Reason `json:"reason,omitempty" doc:"Reason for which it was skipped."`
	Position   *uint64         `json:"position" doc:"Null until drawn."`
	Ahead      Ahead           `json:"ahead" doc:"Minimum and maximum number of uncalled places ahead of it."`
	ETA        *Span           `json:"eta" doc:"Expected time of the call at the current outflow; null: unknown."`
	LeftMS     *int64          `json:"left_ms,omitempty" doc:"Time left to claim, if called."`
	Settled    *time.Time      `json:"settled,omitempty" doc:"Time at which it was admitted or skipped."`
	SettledAt  *uint64         `json:"settled_index,omitempty" doc:"Index of the entry that settled it."`
}

// Ahead is the range of the number of uncalled places ahead of a ticket.
type Ahead struct {
	Min uint64 `json:"min"`
	Max uint64 `json:"max"`
}

// Span is the range of the expected time of a call.
type Span struct {
	Earliest time.Time  `json:"earliest"`
	Latest   *time.Time `json:"latest" doc:"Null while visitors can still join the window."`
}

// RevokeInput is the reason for revoking a ticket.
type RevokeInput struct {
	Reason fairness.Reason `json:"reason" enum:"revoked,revoked-bot,revoked-duplicate,revoked-fraud,revoked-request" doc:"Class of the reason, which is recorded in the transcript. Default: revoked, any other reason."`
}

// TellInput is a statement for the transcript.
type TellInput struct {
	Subject  fairness.Subject `json:"subject" enum:"stock,price" doc:"stock: left is given. price: min, max and currency are given."`
	Category string           `json:"category" doc:"1 to 32 of a-z, 0-9 and -."`
	Left     uint64           `json:"left,omitempty" doc:"Number of seats of the category that are left."`
	Min      uint64           `json:"min,omitempty" doc:"Lowest price, in minor units of the currency."`
	Max      uint64           `json:"max,omitempty" doc:"Highest price, in minor units of the currency."`
	Currency string           `json:"currency,omitempty" doc:"Three letters, as in ISO 4217."`
}
