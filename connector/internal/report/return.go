package report

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

const (
	returnLabel = "proofline-to/v1\n"
	returnSize  = 16 // length of a truncated signature, in bytes
)

// ReturnKey is shared by a room and its connectors, and signs the URLs to which
// visitors may return with a pass.
type ReturnKey [32]byte

// parseReturnKey parses a key from the reply to a report.
func parseReturnKey(text string) (ReturnKey, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder skips line breaks, so the length must be checked, too.
	isExact := len(text) == base64.RawURLEncoding.EncodedLen(len(b))
	if err != nil || len(b) != len(ReturnKey{}) || !isExact {
		return ReturnKey{}, false
	}
	return ReturnKey(b), true
}

// Sign returns the signature of a URL for a room.
func (k *ReturnKey) Sign(room, to string) string {
	mac := hmac.New(sha256.New, k[:])
	_, _ = mac.Write([]byte(returnLabel + room + "\n" + to)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:returnSize])
}

// ReturnURLs is the server's information about return URLs of a room.
type ReturnURLs struct {
	Key        ReturnKey
	IsRequired bool // the room ignores unsigned return URLs
}
