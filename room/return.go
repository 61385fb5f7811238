package room

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"time"
)

// Connectors sign where visitors want to go back to, with a key that the room
// shares with them: see "The way back" of connector/rules/FORMAT.md.
const (
	// ReturnKeySize is the length of that key, in bytes.
	ReturnKeySize = 32

	returnSize     = 16 // bytes of a signature
	returnLabel    = "proofline-to/v1\n"
	returnKeyLabel = "proofline return key 1"
	// returnGrace is how long after a rotation what the key before has signed is
	// taken: whoever was led here by it may be in line.
	returnGrace = 24 * time.Hour
)

// Wanted is where a visitor wants to go in the end.
type Wanted struct {
	To  string // a URL; empty for nowhere in particular
	Sig string // of the connector that takes a pass there; empty for none
}

// ReturnKey is what the connectors of the room's site sign with. It follows from
// the key of passes, so that it is sealed with it and followed by another one when
// that is rotated: a minute later, when all nodes know.
func (r *Room) ReturnKey() [ReturnKeySize]byte {
	all, now := r.passKeys(), r.clock.Now()
	for _, k := range all[:len(all)-1] {
		if now.Sub(k.from) >= rotationGrace {
			return returnKeyOf(k.private)
		}
	}
	return returnKeyOf(r.keys.pass)
}

func returnKeyOf(private ed25519.PrivateKey) [ReturnKeySize]byte {
	mac := hmac.New(sha256.New, private.Seed())
	_, _ = mac.Write([]byte(returnKeyLabel)) // never fails
	return [ReturnKeySize]byte(mac.Sum(nil))
}

// signReturn signs that a URL is one at which a pass of the room is taken.
func signReturn(key [ReturnKeySize]byte, room, to string) []byte {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte(returnLabel + room + "\n" + to)) // never fails
	return mac.Sum(nil)[:returnSize]
}

// isSigned tells whether a connector has signed what is wanted.
func (r *Room) isSigned(w Wanted) bool {
	sig, err := base64.RawURLEncoding.Strict().DecodeString(w.Sig)
	if err != nil || len(sig) != returnSize || len(w.Sig) != base64.RawURLEncoding.EncodedLen(returnSize) { // the decoder skips line breaks
		return false
	}
	for _, k := range r.usedWithin(returnGrace) {
		if hmac.Equal(sig, signReturn(returnKeyOf(k.private), r.URL, w.To)) {
			return true
		}
	}
	return false
}

// Takes tells whether the room leads admitted visitors to what is wanted: the
// targets allow it, and a connector has signed it if the room wants that.
func (r *Room) Takes(w Wanted) bool {
	if w.To == "" {
		return false
	}
	settings, _ := r.Settings()
	_, ok := settings.Target(w.To)
	return ok && (!settings.SignedReturn || r.isSigned(w))
}

// Target returns the URL that an admitted visitor is sent to: the wanted one if
// the room takes it, and the first target when none is wanted, or only the
// signature is missing or wrong. False when the room has no target, or its targets
// do not allow the wanted one.
func (r *Room) Target(w Wanted) (*url.URL, bool) {
	settings, _ := r.Settings()
	u, ok := settings.Target(w.To)
	if ok && !r.Takes(w) {
		return settings.Target("")
	}
	return u, ok
}
