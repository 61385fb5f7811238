// Package credential verifies what a ticket shows about its holder: that it did some work, or that an
// issuer named in the room's policy vouches for it. RULES.md specifies each byte in its section
// "Credentials".
//
// A policy names its methods ([Method]). A [Credential] belongs to one method and is good for one
// [Subject] alone: a ticket in a lane of a room. Whether a nullifier was used before, and how many
// credentials a method has taken, is not decided here.
package credential

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
)

// Errors, one for each way to be wrong. A credential of another room, method, lane or ticket has
// [ErrSignature] or [ErrWork].
var (
	ErrMethod    = errors.New("not a method")                        // a name, kind, number or spelling
	ErrKey       = errors.New("not a key")                           // a public key that is malformed or weak
	ErrSyntax    = errors.New("not a credential")                    // another spelling, or impossible sizes
	ErrNullifier = errors.New("a nullifier is missing, or too much") // for the method's kind
	ErrSize      = errors.New("evidence of the wrong length")        // for the method's kind and key
	ErrRange     = errors.New("signature out of range")              // S >= L, or s >= n: a second spelling
	ErrSignature = errors.New("signature does not verify")
	ErrRound     = errors.New("the beacon round of the work is not known")
	ErrWork      = errors.New("too little work")
)

const (
	// NullifierSize is the length of a nullifier in bytes.
	NullifierSize = 32

	label     = "proofline/credential/v1"
	nonceSize = 8 // bytes of a work's evidence
)

// Credential is what a visitor shows for one method.
type Credential struct {
	Method    string
	Nullifier []byte // [NullifierSize] bytes; Work and Blind: none
	Evidence  []byte // the signature, at most 512 bytes; Work: 8 bytes
}

// Subject is what a credential is good for.
type Subject struct {
	Room   [sha256.Size]byte // SHA-256 of the room entry
	Lane   string
	Ticket [16]byte
	Round  []byte // Work: the beacon's signature of the first round after the room opens; empty: not known
}

// Parse reads the three fields of a credential, or returns [ErrSyntax]. It accepts only what
// [Credential.AppendText] writes, and retains nothing.
func Parse(method, nullifier, evidence []byte) (Credential, error) {
	c := Credential{Method: string(method)}
	c.Nullifier, _ = hex.AppendDecode(nil, nullifier)
	c.Evidence, _ = hex.AppendDecode(nil, evidence)
	n := len(c.Nullifier)
	text := bytes.Join([][]byte{method, nullifier, evidence}, []byte(" "))
	if !isName(c.Method) || n != 0 && n != NullifierSize || len(c.Evidence) == 0 || len(c.Evidence) > maxModulus ||
		!bytes.Equal(c.AppendText(make([]byte, 0, len(text))), text) {
		return Credential{}, fmt.Errorf("%w: want METHOD NULLIFIER EVIDENCE in lower-case hex", ErrSyntax)
	}
	return c, nil
}

// AppendText appends "METHOD NULLIFIER EVIDENCE", with "-" for no nullifier.
func (c Credential) AppendText(dst []byte) []byte {
	dst = append(append(dst, c.Method...), ' ')
	if len(c.Nullifier) == 0 {
		dst = append(dst, '-')
	}
	return hex.AppendEncode(append(hex.AppendEncode(dst, c.Nullifier), ' '), c.Evidence)
}

// AppendMessage appends what an issuer signs, and what work is done for:
// label || 0 || room || method || 0 || lane || 0 || ticket || nullifier.
func (s Subject) AppendMessage(dst []byte, method string, nullifier []byte) []byte {
	dst = append(append(append(dst, label...), 0), s.Room[:]...)
	dst = append(append(append(dst, method...), 0), s.Lane...)
	return append(append(append(dst, 0), s.Ticket[:]...), nullifier...)
}

// Verifier verifies the credentials of one method. It is safe for concurrent use.
type Verifier struct {
	name                string
	nullifier, evidence int // sizes in bytes
	scheme              interface {
		verify(message []byte, s Subject, evidence []byte) error
	}
}

// Verify returns an error of this package if c is not a credential of the verifier's method for s.
func (v *Verifier) Verify(s Subject, c Credential) error {
	err := ErrSyntax
	switch {
	case c.Method != v.name:
	case len(c.Nullifier) != v.nullifier:
		err = ErrNullifier
	case len(c.Evidence) != v.evidence:
		err = ErrSize
	default:
		err = v.scheme.verify(s.AppendMessage(make([]byte, 0, 256), v.name, c.Nullifier), s, c.Evidence)
	}
	if err != nil {
		return fmt.Errorf("method %s: %w", v.name, err)
	}
	return nil
}

// work is a number of zero bits.
type work int

func (w work) verify(message []byte, s Subject, nonce []byte) error {
	if len(s.Round) == 0 {
		return ErrRound
	}
	if ZeroBits(append(append(message, s.Round...), nonce...)) < int(w) {
		return ErrWork
	}
	return nil
}

// ZeroBits returns the number of zero bits at the beginning of data's SHA-256.
func ZeroBits(data []byte) (n int) {
	for _, b := range sha256.Sum256(data) {
		n += bits.LeadingZeros8(b)
		if b != 0 {
			break
		}
	}
	return n
}
