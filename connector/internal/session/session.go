package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"
	"time"
)

// CookiePrefix begins the name of a session cookie; the room's name follows.
const CookiePrefix = "__Host-proofline-pass."

// Session is the content of a session cookie. Times are milliseconds since 1970.
type Session struct {
	Room    [8]byte  // identifier of the room
	Ticket  [16]byte // zero: unqueued session
	Pass    [16]byte // id of the pass; of an unqueued session, its own id
	Issued  int64    // when this cookie was made
	Ends    int64    // end unless the session is extended
	MaxEnds int64    // latest end, however active the visitor is
	Length  int64    // duration after each touch, in ms
	Bind    [8]byte  // network or browser family; zero: not bound to one
	Key     [16]byte // thumbprint of the browser's key; zero: none
	Token   string   // the pass, sent with touches and releases; empty: unqueued session
}

// fixedSize is the size of a session without its token.
const fixedSize = 1 + 8 + 16 + 16 + 4*8 + 8 + 16

// sessionVersion is the first byte of a cookie.
const sessionVersion = 1

// TouchInterval is the maximum time between touches of an active session.
const TouchInterval = time.Minute

// maxCookie is the maximum length of a cookie's value, as browsers limit it.
const maxCookie = 4000

// tagOf returns a room's identifier in cookies.
func tagOf(url, origin string) (tag [8]byte) {
	sum := sha256.Sum256([]byte("proofline room\n" + url + "\n" + origin))
	copy(tag[:], sum[:])
	return tag
}

// Signer signs cookies and checks them.
type Signer struct{ buffers sync.Pool }

// cookieBuffer is pooled memory for reading or writing one cookie.
type cookieBuffer struct {
	mac  hash.Hash
	text [maxCookie]byte // base64url
	body [maxCookie]byte
	sum  [sha256.Size]byte
}

// sign returns the signature of b, valid until the next call.
func (d *cookieBuffer) sign(b []byte) []byte {
	d.mac.Reset()
	_, _ = d.mac.Write(b)
	return d.mac.Sum(d.sum[:0])
}

// cookieLabel is the label of the key that signs cookies.
const cookieLabel = "proofline connector session 1"

// Derive derives the key for one purpose from the connector's key.
func Derive(key []byte, label string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(label)) // never fails
	return mac.Sum(nil)
}

// NewSigner returns a signer with a key derived from the connector's, which may serve other
// purposes, too.
func NewSigner(key []byte) *Signer {
	own := Derive(key, cookieLabel)
	return &Signer{sync.Pool{New: func() any { return &cookieBuffer{mac: hmac.New(sha256.New, own)} }}}
}

// Format returns the cookie's value.
func (s *Signer) Format(v *Session) string {
	d, _ := s.buffers.Get().(*cookieBuffer)
	defer s.buffers.Put(d)
	b := make([]byte, 0, fixedSize+len(v.Token)+sha256.Size)
	b = append(b, sessionVersion)
	b = append(b, v.Room[:]...)
	b = append(b, v.Ticket[:]...)
	b = append(b, v.Pass[:]...)
	for _, n := range []int64{v.Issued, v.Ends, v.MaxEnds, v.Length} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, v.Bind[:]...)
	b = append(b, v.Key[:]...)
	b = append(b, v.Token...)
	return base64.RawURLEncoding.EncodeToString(append(b, d.sign(b)...))
}

var strict = base64.RawURLEncoding.Strict()

// Parse reads a cookie's value. It returns false if we did not sign it.
func (s *Signer) Parse(text string, v *Session) bool {
	if len(text) > maxCookie || len(text) < strict.EncodedLen(fixedSize+sha256.Size) {
		return false
	}
	d, _ := s.buffers.Get().(*cookieBuffer)
	defer s.buffers.Put(d)
	n, err := strict.Decode(d.body[:], d.text[:copy(d.text[:], text)])
	if err != nil {
		return false
	}
	body, sum := d.body[:n-sha256.Size], d.body[n-sha256.Size:n]
	if !hmac.Equal(d.sign(body), sum) || body[0] != sessionVersion {
		return false
	}
	body = body[1:]
	body = body[copy(v.Room[:], body):]
	body = body[copy(v.Ticket[:], body):]
	body = body[copy(v.Pass[:], body):]
	for _, p := range []*int64{&v.Issued, &v.Ends, &v.MaxEnds, &v.Length} {
		*p, body = int64(binary.BigEndian.Uint64(body)), body[8:]
	}
	body = body[copy(v.Bind[:], body):]
	body = body[copy(v.Key[:], body):]
	v.Token = string(body)
	return true
}

// IsUnqueued reports whether the session began without a pass, at an open gate.
func (v *Session) IsUnqueued() bool { return v.Ticket == [16]byte{} }

// IsDue reports whether the session should be touched and its cookie renewed.
func (v *Session) IsDue(now time.Time) bool {
	return now.UnixMilli()-v.Issued >= min(TouchInterval.Milliseconds(), v.Length/3)
}

// Slide extends a session, counting from now.
func (v *Session) Slide(now time.Time) {
	v.Issued = now.UnixMilli()
	v.Ends = min(v.Issued+v.Length, v.MaxEnds)
}
