package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// ErrTicket is returned when a text is no canonical ticket: a lower-case
// UUID of version 8 and RFC 9562 variant.
var ErrTicket = errors.New("not a ticket: want a lower-case UUID of version 8")

// SecretSize is the length of a visitor's secret in bytes.
const SecretSize = 32

const (
	ticketLabel = "proofline/ticket/v1"
	passLabel   = "proofline/pass/v1"
	uuidLength  = 36
)

// Ticket is the public id of an arrival: a commitment to a secret that only
// the visitor holds, in the form of a UUIDv8 (RFC 9562 section 5.8).
type Ticket [16]byte

// PassID names the pass of an admitted ticket, a UUIDv8 too. It is derived
// from the ticket, so the same ticket can never be given two.
type PassID [16]byte

// NewTicket commits to a secret in the room of that origin:
// UUIDv8(SHA-256(label || 0 || origin || 0 || secret)[0:16]).
func NewTicket(origin string, secret [SecretSize]byte) Ticket {
	return Ticket(uuid8(ticketLabel, origin, secret[:]))
}

// NewPassID derives the pass id of an admitted ticket:
// UUIDv8(SHA-256(label || 0 || origin || 0 || ticket)[0:16]).
func NewPassID(origin string, t Ticket) PassID {
	return PassID(uuid8(passLabel, origin, t[:]))
}

func uuid8(label, origin string, tail []byte) [16]byte {
	b := make([]byte, 0, 256)
	b = append(b, label...)
	b = append(b, 0)
	b = append(b, origin...)
	b = append(b, 0)
	b = append(b, tail...)
	sum := sha256.Sum256(b)
	id := [16]byte(sum[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // variant 10
	return id
}

// ParseTicket reads the canonical text of a ticket; any other text is
// [ErrTicket].
func ParseTicket(text string) (Ticket, error) {
	id, ok := parseUUID([]byte(text))
	if t := Ticket(id); ok && t.String() == text {
		return t, nil
	}
	return Ticket{}, ErrTicket
}

// String returns the canonical text, 36 characters.
func (t Ticket) String() string { return string(appendUUID(nil, t)) }

// AppendText appends the canonical text to dst. It never fails.
func (t Ticket) AppendText(dst []byte) ([]byte, error) { return appendUUID(dst, t), nil }

// String returns the canonical text, 36 characters.
func (p PassID) String() string { return string(appendUUID(nil, p)) }

// uuidGroups are the lengths in bytes of a UUID's five groups.
var uuidGroups = [...]int{4, 2, 2, 2, 6}

func appendUUID(dst []byte, id [16]byte) []byte {
	from := 0
	for i, n := range uuidGroups {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[from:from+n])
		from += n
	}
	return dst
}

// parseUUID reads a UUIDv8 whose hex may be upper case: the caller writes it
// again and compares.
func parseUUID(text []byte) (id [16]byte, ok bool) {
	if len(text) != uuidLength {
		return id, false
	}
	rest, to := text, 0
	for i, n := range uuidGroups {
		if i > 0 {
			if rest[0] != '-' {
				return id, false
			}
			rest = rest[1:]
		}
		if !decodeHex(id[to:to+n], rest[:2*n]) {
			return id, false
		}
		rest, to = rest[2*n:], to+n
	}
	return id, id[6]>>4 == 8 && id[8]>>6 == 2
}

// decodeHex reads hex, upper case too, of exactly len(dst) bytes.
func decodeHex(dst, text []byte) bool {
	if len(text) != 2*len(dst) {
		return false
	}
	_, err := hex.Decode(dst, text)
	return err == nil
}
