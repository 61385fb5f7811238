package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// ErrTicket is returned for a text that is not a canonical ticket, that is, a lower-case UUID of
// version 8 and RFC 9562 variant.
var ErrTicket = errors.New("not a ticket: want a lower-case UUID of version 8")

// SecretSize is the length of a visitor's secret in bytes.
const SecretSize = 32

const (
	ticketLabel = "proofline/ticket/v1"
	passLabel   = "proofline/pass/v1"
	uuidLength  = 36
)

// Ticket is the public id of an arrival: a commitment to a secret that only the visitor holds, in
// the form of a UUIDv8 (RFC 9562 section 5.8).
type Ticket [16]byte

// PassID identifies the pass of an admitted ticket; it is also a UUIDv8. It is derived from the
// ticket, so a ticket has exactly one.
type PassID [16]byte

// NewTicket commits to a secret in the room with the given origin: UUIDv8(SHA-256(label || 0 ||
// origin || 0 || secret)[0:16]).
func NewTicket(origin string, secret [SecretSize]byte) Ticket {
	return Ticket(uuid8(ticketLabel, origin, secret[:]))
}

// NewPassID derives the pass id of an admitted ticket:
// UUIDv8(SHA-256(label || 0 || origin || 0 || ticket)[0:16]).
func NewPassID(origin string, t Ticket) PassID {
	return PassID(uuid8(passLabel, origin, t[:]))
}

func uuid8(label, origin string, tail []byte) [16]byte {
	sum := sha256.Sum256(labelled(label, []byte(origin), []byte{0}, tail))
	id := [16]byte(sum[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // variant 10
	return id
}

// labelled joins a label, a zero byte and the parts. It builds the input of every hash of these
// rules, so that no hash can be mistaken for another.
func labelled(label string, parts ...[]byte) []byte {
	b := append(make([]byte, 0, 256), label...)
	b = append(b, 0)
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}

// ParseTicket reads the canonical text of a ticket, or returns [ErrTicket].
func ParseTicket(text string) (Ticket, error) {
	var in, again [uuidLength]byte // stays on the stack
	n := copy(in[:], text)
	id, ok := parseUUID(in[:n])
	if !ok || len(text) != n || string(appendUUID(again[:0], id)) != text {
		return Ticket{}, ErrTicket
	}
	return Ticket(id), nil
}

// String returns the canonical text, 36 characters.
func (t Ticket) String() string { return string(appendUUID(nil, t)) }

// String returns the canonical text, 36 characters.
func (p PassID) String() string { return string(appendUUID(nil, p)) }

func appendUUID(dst []byte, id [16]byte) []byte {
	text := [uuidLength]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	var digits [32]byte
	hex.Encode(digits[:], id[:])
	copy(text[0:8], digits[0:8])
	copy(text[9:13], digits[8:12])
	copy(text[14:18], digits[12:16])
	copy(text[19:23], digits[16:20])
	copy(text[24:36], digits[20:32])
	return append(dst, text[:]...)
}

// parseUUID reads a UUIDv8. It ignores the dashes and accepts upper case: the caller writes the id
// again and compares.
func parseUUID(text []byte) (id [16]byte, ok bool) {
	if len(text) != uuidLength {
		return id, false
	}
	var digits [32]byte
	copy(digits[0:8], text[0:8])
	copy(digits[8:12], text[9:13])
	copy(digits[12:16], text[14:18])
	copy(digits[16:20], text[19:23])
	copy(digits[20:32], text[24:36])
	ok = decodeHex(id[:], digits[:])
	return id, ok && isUUID8(id)
}

func isUUID8(id [16]byte) bool { return id[6]>>4 == 8 && id[8]>>6 == 2 }

// decodeHex reads exactly len(dst) bytes in hex, upper or lower case.
func decodeHex(dst, text []byte) bool {
	if len(text) != 2*len(dst) {
		return false
	}
	_, err := hex.Decode(dst, text)
	return err == nil
}
