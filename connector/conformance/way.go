package conformance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// returnKey returns the key that signs a room's return URLs.
func (r *Room) returnKey(room string) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.publicKey() + room))
}

// signed returns the signature of a URL for a room (connector/rules/FORMAT.md).
func (r *Room) signed(room, to string) string {
	key := r.returnKey(room)
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("proofline-to/v1\n" + room + "\n" + to)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// returnTarget returns the URL that a response redirects to, without the signature, and the kind of
// its return URL: "signed", "open", "none" or "forged".
func (s *suite) returnTarget(r reply) (location, back string) {
	link := r.header.Get("Location")
	var said struct{ Join string }
	if r.status == http.StatusForbidden && json.Unmarshal([]byte(r.body), &said) == nil {
		link = said.Join
	}
	location, sig, isSigned := strings.Cut(link, "&to_sig=")
	u, err := url.Parse(location)
	switch to := u.Query().Get("to"); {
	case err != nil || isSigned && sig != s.signed(strings.TrimSuffix(location, "?"+u.RawQuery), to):
		return location, "forged"
	case isSigned:
		return location, "signed"
	case to != "":
		return location, "open"
	}
	return location, "none"
}

// returnHeader returns the kind of a response's Proofline-Return header.
func (s *suite) returnHeader(r reply, location string) string {
	how := r.header.Get("Proofline-Return")
	u, err := url.Parse(location)
	if err == nil && how != "" && how == s.signed(r.header.Get("Proofline-Queue"), u.Query().Get("to")) {
		return "signed"
	}
	return how
}
