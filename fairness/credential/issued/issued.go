// Package issued reads and writes the signed count that an issuer publishes at /issued: how many accounts have a
// credential of each of its offers. An auditor compares it with the number of tickets that showed one.
//
// A count is a [signed note] whose text has these lines, the last of which repeats for each offer:
//
//	proofline/issued/v1
//	time MILLISECONDS
//	OFFER METHOD ROOM ACCOUNTS LIMIT
//
// ROOM is the SHA-256 of the room entry in hex. A limit of 0 is no limit. The key is the one with which the issuer
// signs credentials of the kind signed, so the policy of a room names it. The note has the name for the key.
//
// [signed note]: https://c2sp.org/signed-note
package issued

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Count is how many accounts have a credential of each offer of an issuer.
type Count struct {
	By     string // name under which it is signed: the issuer's host and path
	Millis int64  // when it was signed, since the Unix epoch
	Offers []Offer
}

// Offer is the line of an offer.
type Offer struct {
	Name     string
	Method   string            // name in the room's policy
	Room     [sha256.Size]byte // SHA-256 of the room entry
	Accounts uint64
	Limit    uint32 // maximum number of accounts; 0: no limit
}

// Errors of [Open].
var (
	ErrForm = errors.New("not a count of an issuer")
	ErrKey  = errors.New("the count is signed with none of the keys")
)

const version = "proofline/issued/v1"

// MaxSize is the maximum size of a count in bytes.
const MaxSize = 1 << 20

// VerifierKey returns the key that verifies counts signed under a name, in signed-note form.
func VerifierKey(name string, key ed25519.PublicKey) (string, error) {
	return note.NewEd25519VerifierKey(name, key)
}

// Sign returns the count as a note signed with a key.
func (c *Count) Sign(key ed25519.PrivateKey) ([]byte, error) {
	verifier, err := VerifierKey(c.By, key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("sign count: %w", err)
	}
	hash := strings.SplitN(verifier, "+", 3)[1]
	signer, err := note.NewSigner("PRIVATE+KEY+" + c.By + "+" + hash + "+" +
		base64.StdEncoding.EncodeToString(append([]byte{1}, key.Seed()...)))
	if err != nil {
		return nil, fmt.Errorf("sign count: %w", err)
	}
	return note.Sign(&note.Note{Text: c.text()}, signer)
}

func (c *Count) text() string {
	text := fmt.Appendf(nil, "%s\ntime %d\n", version, c.Millis)
	for _, o := range c.Offers {
		text = fmt.Appendf(text, "%s %s %x %d %d\n", o.Name, o.Method, o.Room, o.Accounts, o.Limit)
	}
	return string(text)
}

// Open reads a count that is signed with one of the keys, under any name. It returns [ErrForm] or [ErrKey].
func Open(signed []byte, keys ...ed25519.PublicKey) (*Count, error) {
	if len(signed) > MaxSize {
		return nil, ErrForm
	}
	name := signerOf(string(signed))
	var verifiers []note.Verifier
	for _, key := range keys {
		text, err := VerifierKey(name, key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForm, err)
		}
		v, err := note.NewVerifier(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForm, err)
		}
		verifiers = append(verifiers, v)
	}
	opened, err := note.Open(signed, note.VerifierList(verifiers...))
	if unknown := (*note.UnverifiedNoteError)(nil); errors.As(err, &unknown) {
		return nil, ErrKey
	}
	if invalid := (*note.InvalidSignatureError)(nil); errors.As(err, &invalid) {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	c := &Count{By: name}
	if !c.parse(opened.Text) || c.text() != opened.Text {
		return nil, ErrForm
	}
	return c, nil
}

// signerOf returns the name in the first signature of a note; "" if there is none.
func signerOf(signed string) string {
	_, signatures, _ := strings.Cut(signed, "\n\n\u2014 ")
	name, _, _ := strings.Cut(signatures, " ")
	return name
}

// parse reads the text of a count. Numbers may be spelled in ways that text does not write.
func (c *Count) parse(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || lines[0] != version {
		return false
	}
	millis, isTime := strings.CutPrefix(lines[1], "time ")
	var err error
	if c.Millis, err = strconv.ParseInt(millis, 10, 64); err != nil || !isTime {
		return false
	}
	for _, line := range lines[2:] {
		fields := strings.Split(line, " ")
		if len(fields) != 5 {
			return false
		}
		o := Offer{Name: fields[0], Method: fields[1]}
		room, err1 := hex.DecodeString(fields[2])
		accounts, err2 := strconv.ParseUint(fields[3], 10, 63)
		limit, err3 := strconv.ParseUint(fields[4], 10, 32)
		if errors.Join(err1, err2, err3) != nil || len(room) != len(o.Room) {
			return false
		}
		o.Room, o.Accounts, o.Limit = [sha256.Size]byte(room), accounts, uint32(limit)
		c.Offers = append(c.Offers, o)
	}
	return true
}

// Of returns how many accounts have a credential of a method in a room, in all offers of that method; false if no offer
// is of it.
func (c *Count) Of(room [sha256.Size]byte, method string) (accounts uint64, isOffered bool) {
	for _, o := range c.Offers {
		if o.Room == room && o.Method == method {
			accounts, isOffered = accounts+o.Accounts, true
		}
	}
	return accounts, isOffered
}
