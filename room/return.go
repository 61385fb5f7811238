package room

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"time"
)

// Connectors sign the return URL of a visitor with a key that the room shares with them: see "The way back"
// in connector/rules/FORMAT.md.
const (
	// ReturnKeySize is the length of that key, in bytes.
	ReturnKeySize = 32

	returnSize     = 16 // bytes of a signature
	returnLabel    = "proofline-to/v1\n"
	returnKeyLabel = "proofline return key 1"
	// returnGrace is how long after a rotation signatures of the previous key are accepted: visitors who came
	// with one may be in line.
	returnGrace = 24 * time.Hour
)

// Wanted is the URL that a visitor wants to return to.
type Wanted struct {
	To  string // empty: no particular URL
	Sig string // signature of the connector that accepts a pass there; empty: none
}

// ReturnKey returns the key with which the connectors of the room's site sign. It is derived from the pass
// key, so it is sealed and rotated with it, a minute after the pass key, when all nodes know the new one.
func (r *Room) ReturnKey() [ReturnKeySize]byte {
	all, now := r.passKeys(), r.clock.Now()
	for _, k := range all[:len(all)-1] {
		if now.Sub(k.from) >= rotationGrace {
			return returnKeyOf(k.private)
		}
	}
	return returnKeyOf(r.keys.Pass)
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

// isSigned reports whether a connector has signed the wanted URL.
func (r *Room) isSigned(w Wanted) bool {
	sig, err := base64.RawURLEncoding.Strict().DecodeString(w.Sig)
	// The decoder skips line breaks.
	if err != nil || len(sig) != returnSize || len(w.Sig) != base64.RawURLEncoding.EncodedLen(returnSize) {
		return false
	}
	for _, k := range r.usedWithin(returnGrace) {
		if hmac.Equal(sig, signReturn(returnKeyOf(k.private), r.URL, w.To)) {
			return true
		}
	}
	return false
}

// Takes reports whether the room sends admitted visitors to the wanted URL: the targets must allow it, and a
// connector must have signed it if the room requires that.
func (r *Room) Takes(w Wanted) bool {
	if w.To == "" {
		return false
	}
	settings, _ := r.Settings()
	_, ok := settings.Target(w.To)
	return ok && (!settings.SignedReturn || r.isSigned(w))
}

// Target returns the URL that an admitted visitor is sent to: the wanted one if the room takes it, and the
// first target when none is wanted or its signature is missing or wrong. It returns false when the room has
// no targets, or they do not allow the wanted URL.
func (r *Room) Target(w Wanted) (*url.URL, bool) {
	settings, _ := r.Settings()
	u, ok := settings.Target(w.To)
	if ok && !r.Takes(w) {
		return settings.Target("")
	}
	return u, ok
}
