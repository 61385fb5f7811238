package wire

import (
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/revocation"
)

// NamedTickets names many tickets of a room: those of a list or, with a method, those that have shown it.
type NamedTickets struct {
	Tickets    []string `json:"tickets,omitempty" doc:"1 to 10000 tickets."`
	Method     string   `json:"method,omitempty" doc:"Name of a method of the room, in place of tickets: all tickets that have shown it, at the join or later."`
	Nullifiers []string `json:"nullifiers,omitempty" doc:"With method: only tickets that have shown one of these 1 to 10000 nullifiers, each 64 lower-case hex digits. The method must be of kind signed."`
	All        bool     `json:"all,omitempty" doc:"With method: all of its tickets, 10000 with each request."`
	From       uint32   `json:"from,omitempty" doc:"With all: the next of the request before."`
	Check      bool     `json:"check,omitempty" doc:"Only count the tickets, and change nothing."`
}

// RevocationsInput revokes many tickets.
type RevocationsInput struct {
	NamedTickets
	Reason      fairness.Reason `json:"reason,omitempty" enum:"revoked,revoked-bot,revoked-duplicate,revoked-fraud,revoked-request" doc:"Class of the reason, which is recorded in the transcript. Default: revoked, any other reason."`
	SkipUnknown bool            `json:"skip_unknown,omitempty" doc:"Leave out tickets that have not joined this room, instead of refusing the request."`
}

// RestorationsInput gives many revoked tickets their places back.
type RestorationsInput struct {
	NamedTickets
	Since       uint64 `json:"since,omitempty" doc:"Only tickets that this entry of the transcript or a later one revoked, such as the first of a revocation."`
	SkipUnknown bool   `json:"skip_unknown,omitempty" doc:"Leave out tickets that have not joined this room, instead of refusing the request."`
}

// TicketTally counts tickets by where they stood before the request.
type TicketTally struct {
	Waiting  int     `json:"waiting" doc:"In line, and not called."`
	Called   int     `json:"called" doc:"Called, and not admitted."`
	Drawing  int     `json:"drawing" doc:"In a draw that is under way: they can be neither revoked nor restored until it is over."`
	Admitted int     `json:"admitted" doc:"Admitted before, so that there is nothing to revoke."`
	Gone     int     `json:"gone" doc:"Left, did not come, or wanted more seats than were left."`
	Revoked  int     `json:"revoked" doc:"Revoked, and never restored."`
	Again    int     `json:"revoked_again" doc:"Revoked once more after they were restored, which is final."`
	Passed   int     `json:"passed" doc:"Of those revoked, how many would be called at once if they were restored."`
	Unknown  int     `json:"unknown" doc:"Tickets that have not joined this room, or nullifiers that none of its tickets has shown."`
	Repeated int     `json:"repeated" doc:"Named more than once."`
	Next     *uint32 `json:"next" doc:"With all: from of the next request. Null: there are no more."`
}

// Revocations is the result of a revocation.
type Revocations struct {
	Tally TicketTally `json:"tally"`
	Done  int         `json:"done" doc:"Tickets revoked: those that waited or were called, all of them."`
	First *uint64     `json:"first" doc:"Index of the first entry of the transcript that revoked one; null: none was revoked."`
}

// Restorations is the result of giving places back.
type Restorations struct {
	Tally  TicketTally `json:"tally"`
	Done   int         `json:"done" doc:"Tickets restored."`
	Called int         `json:"called" doc:"Of these, those that were called at once, because the line had passed their places."`
	Later  int         `json:"later" doc:"Tickets that cannot be called at once now, because of outflow, seats or a pause: send the request again later."`
}

// Selection reads which tickets a request names. The error is an [*invalid.Error].
func (in NamedTickets) Selection(skipUnknown bool) (s revocation.Selection, err error) {
	s = revocation.Selection{SkipUnknown: skipUnknown, Method: in.Method, From: in.From}
	var problems invalid.List
	problems.Check(len(in.Tickets) == 0 || in.Method == "", "tickets", "cannot be given with a method")
	problems.Check(in.Method != "" || len(in.Nullifiers) == 0 && !in.All, "method",
		"must be given with nullifiers or all")
	problems.Check(in.Method == "" || len(in.Nullifiers) > 0 != in.All, "method",
		"must be given with either nullifiers or all")
	problems.Check(in.All || in.From == 0, "from", "can only be given with all")
	for i, text := range in.Tickets {
		t, err := fairness.ParseTicket(text)
		if s.Tickets = append(s.Tickets, t); err != nil && len(problems) < invalid.Max {
			problems.Add(fmt.Sprintf("tickets[%d]", i), "must be a lower-case UUID of version 8")
		}
	}
	for i, text := range in.Nullifiers {
		n, err := revocation.ParseNullifier(text)
		if s.Nullifiers = append(s.Nullifiers, n); err != nil && len(problems) < invalid.Max {
			problems.Add(fmt.Sprintf("nullifiers[%d]", i), err.Error())
		}
	}
	return s, problems.Err()
}

// NewTicketTally returns a tally as the API writes it.
func NewTicketTally(t revocation.Tally) TicketTally {
	out := TicketTally{
		Waiting: t.Waiting, Called: t.Called, Drawing: t.Drawing, Admitted: t.Admitted, Gone: t.Gone,
		Revoked: t.Revoked,
		Again:   t.Again, Passed: t.Passed, Unknown: t.Unknown, Repeated: t.Repeated,
	}
	if t.Next > 0 {
		out.Next = &t.Next
	}
	return out
}
