package session

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// Connectors sign the return URL of a visitor with a key that the room shares with them: see "The way back"
// in connector/rules/FORMAT.md.
const (
	// ReturnKeySize is the length of that key, in bytes.
	ReturnKeySize = 32

	returnSize     = 16 // length of a signature, in bytes
	returnLabel    = "proofline-to/v1\n"
	returnKeyLabel = "proofline return key 1"
	// returnGrace is how long after a rotation signatures of the previous key are accepted: visitors who arrived with
	// one may still be in line.
	returnGrace = 24 * time.Hour
)

// ReturnKey returns the key with which the connectors of the room's site sign. It is derived from the pass key, so
// it is sealed and rotated with that. It changes a minute after the pass key, when all nodes know the new one.
func (k *PassKeys) ReturnKey() [ReturnKeySize]byte {
	all, now := k.all(), k.clock.Now()
	for _, key := range all[:len(all)-1] {
		if now.Sub(key.from) >= rotationGrace {
			return returnKeyOf(key.private)
		}
	}
	return returnKeyOf(k.first)
}

func returnKeyOf(private ed25519.PrivateKey) [ReturnKeySize]byte {
	mac := hmac.New(sha256.New, private.Seed())
	_, _ = mac.Write([]byte(returnKeyLabel)) // never fails
	return [ReturnKeySize]byte(mac.Sum(nil))
}

// signReturn signs a URL at which a pass of the room is accepted.
func signReturn(key [ReturnKeySize]byte, room, to string) []byte {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte(returnLabel + room + "\n" + to)) // never fails
	return mac.Sum(nil)[:returnSize]
}

// HasSigned reports whether a connector has signed a return URL of the room with the URL room.
func (k *PassKeys) HasSigned(room, to, signature string) bool {
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	// The decoder skips line breaks.
	if err != nil || len(sig) != returnSize || len(signature) != base64.RawURLEncoding.EncodedLen(returnSize) {
		return false
	}
	for _, key := range k.usedWithin(returnGrace) {
		if hmac.Equal(sig, signReturn(returnKeyOf(key.private), room, to)) {
			return true
		}
	}
	return false
}
