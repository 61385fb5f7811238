// Package id makes random ids, and formats and parses ids of 16 bytes.
package id

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// ID is a random id, such as that of a pass, a ticket, a session or a fail-open interval.
type ID = [16]byte

var strict = base64.RawURLEncoding.Strict()

// New returns a random id.
func New() (id ID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// Text returns an id in base64url, as used in reports.
func Text(id ID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// Texts returns ids in base64url.
func Texts(list []ID) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = Text(id)
	}
	return texts
}

// Parse parses an id in base64url.
func Parse(text string) (id ID, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	b, err := strict.DecodeString(text)
	return id, err == nil && copy(id[:], b) == len(id)
}

// UUID returns the canonical text of a UUID.
func UUID(id ID) string {
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	return string(text[:])
}

// ParseUUID parses the canonical text of a UUID, and rejects other forms.
func ParseUUID(text string) (id ID, ok bool) {
	if len(text) != 36 {
		return id, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || copy(id[:], b) != 16 {
		return id, false
	}
	return id, UUID(id) == text
}
