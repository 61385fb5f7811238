package ticket

import (
	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// record checks the visitor's arrival in the receipt's tree and in the published one.
func (j *judge) record(facts Facts) Reason {
	b := j.b
	noRoom := NoRoom
	if b.Room == nil && b.Malformed != nil {
		noRoom = Malformed
	}
	vkey, from, ok := j.vkey()
	facts["key_from"] = from
	if !ok {
		return WrongKey
	}
	var err error
	if j.key, err = audit.ParseKey(vkey); err != nil || j.key.Name() != string(b.Origin) {
		if from == KeyLog {
			return noRoom
		}
		return WrongKey
	}
	if j.head, _, err = audit.OpenCheckpoint(b.Checkpoint, j.key); err != nil {
		return NoCheckpoint
	}
	facts.number("size", j.head.Size)
	if j.room, ok = proven[*fairness.Room](j.head, b.Room); !ok || b.Room.Index != 0 {
		return noRoom
	}
	if j.room.LogKey != vkey || len(j.room.Problems()) > 0 { // so its origin is the key's name and the visitor's origin
		return NoRoom
	}
	reason := j.arrival()
	arrive, ok := proven[*fairness.Arrive](j.head, b.Arrive)
	if ok && arrive.Ticket.String() == string(b.Ticket) {
		j.arrive = arrive
		j.done++ // even if the receipt is from another history: the next lines are about this one
		facts.number("index", uint64(b.Arrive.Index))
		facts.number("window", uint64(arrive.Window))
	}
	return reason
}

// vkey returns the key of the log and its source; false if two different keys are given.
func (j *judge) vkey() (vkey, from string, ok bool) {
	inFile := j.b.VKey
	switch {
	case j.trust.VKey != "":
		return j.trust.VKey, KeyGiven, inFile == nil || string(*inFile) == j.trust.VKey
	case inFile != nil:
		return string(*inFile), KeyVisitor, true
	case j.b.Room != nil:
		if e, err := fairness.ParseEntry(j.b.Room.Entry); err == nil {
			if room, isRoom := e.(*fairness.Room); isRoom {
				vkey = room.LogKey
			}
		}
	}
	return vkey, KeyLog, true
}

func (j *judge) arrival() Reason {
	b, head := j.b, j.head
	receipt, err := audit.ParseProof(b.Receipt)
	if err != nil {
		return BadReceipt
	}
	kept, _, err := audit.OpenCheckpoint(receipt.Checkpoint, j.key)
	switch {
	case err != nil:
		return BadReceipt
	case receipt.Index >= head.Size:
		return Behind
	case b.Arrive == nil && b.Malformed != nil:
		return Malformed
	case b.Arrive == nil, uint64(b.Arrive.Index) != receipt.Index, !included(head, b.Arrive):
		return NoArrival
	case kept.Size > head.Size:
		return Behind
	case b.Growth == nil && b.Malformed != nil:
		return Malformed
	case b.Growth == nil, audit.VerifyConsistency(kept, head, b.Growth) != nil:
		return OtherHistory
	case !included(kept, &Proven{b.Arrive.Index, b.Arrive.Entry, receipt.Path}):
		return OtherReceipt
	}
	e, err := fairness.ParseEntry(b.Arrive.Entry)
	arrive, ok := e.(*fairness.Arrive)
	if err != nil || !ok || arrive.Ticket.String() != string(b.Ticket) {
		return OtherTicket
	}
	return Included
}
