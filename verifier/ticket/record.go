package ticket

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// record judges the visitor's arrival in the receipt's tree and in the
// published one.
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
	if j.key, ok = parseKey(vkey); !ok || j.key.Name() != string(b.Origin) {
		if from == KeyLog {
			return noRoom
		}
		return WrongKey
	}
	if j.head, ok = openCheckpoint(b.Checkpoint, j.key); !ok {
		return NoCheckpoint
	}
	facts.number("size", j.head.Size)
	if j.room, ok = proven[*fairness.Room](j.head, b.Room); !ok || b.Room.Index != 0 {
		return noRoom
	}
	if j.room.LogKey != vkey || len(j.room.Problems()) > 0 { // so its origin is the name of the key, and the visitor's
		return NoRoom
	}
	reason := j.arrival()
	arrive, ok := proven[*fairness.Arrive](j.head, b.Arrive)
	if ok && arrive.Ticket.String() == string(b.Ticket) {
		j.arrive = arrive
		j.done++ // also where the receipt is of another history: the lines below are about this one
		facts.number("index", uint64(b.Arrive.Index))
		facts.number("window", uint64(arrive.Window))
	}
	return reason
}

// vkey returns the key of the log and where it comes from; false if two are
// given and differ.
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
	kept, ok := openCheckpoint(receipt.Checkpoint, j.key)
	switch {
	case !ok:
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

// openCheckpoint opens a signed checkpoint. It refuses two things that note lets
// pass: another signature in the key's name that is wrong, and loose base64.
func openCheckpoint(signed []byte, key note.Verifier) (audit.Checkpoint, bool) {
	head, _, err := audit.OpenCheckpoint(signed, key)
	if err != nil {
		return head, false
	}
	split := bytes.LastIndex(signed, []byte("\n\n"))
	text, lines := signed[:split+1], string(signed[split+2:])
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line) // dash, name, base64
		signature, err := base64.StdEncoding.DecodeString(fields[2])
		if err != nil || base64.StdEncoding.EncodeToString(signature) != fields[2] {
			return head, false
		}
		isOwn := fields[1] == key.Name() && binary.BigEndian.Uint32(signature) == key.KeyHash()
		if isOwn && !key.Verify(text, signature[4:]) {
			return head, false
		}
	}
	return head, true
}

// parseKey reads a verifier key, and refuses one in another form than it would
// be written in, which note lets pass.
//
// https://c2sp.org/signed-note#verifier-keys
func parseKey(vkey string) (note.Verifier, bool) {
	key, err := note.NewVerifier(vkey)
	if err != nil || strings.ContainsFunc(key.Name(), func(r rune) bool { return r < ' ' }) {
		return nil, false
	}
	_, rest, _ := strings.Cut(vkey, "+")
	id, typed, _ := strings.Cut(rest, "+")
	decoded, err := base64.StdEncoding.DecodeString(typed)
	ok := err == nil && base64.StdEncoding.EncodeToString(decoded) == typed && strings.ToLower(id) == id
	return key, ok
}
