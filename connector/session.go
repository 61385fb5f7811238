package connector

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// CookiePrefix is followed by the room's name in the name of a session cookie.
const CookiePrefix = "__Host-proofline-pass."

// session is the content of a session cookie. Times are milliseconds since 1970.
type session struct {
	room    [8]byte  // see tagOf
	ticket  [16]byte // zero: unqueued session
	pass    [16]byte // id of the pass; of an unqueued session, its own id
	issued  int64    // when this cookie was made
	ends    int64    // unless extended
	maxEnds int64    // latest end, however active the visitor is
	length  int64    // duration after each touch, in ms
	bind    [8]byte  // network or browser family; zero: not bound to one
	key     [16]byte // thumbprint of the browser's key; zero: none
	token   string   // the pass, sent with touches and releases; empty: unqueued session
}

// fixedSize is the size of a session without its token.
const fixedSize = 1 + 8 + 16 + 16 + 4*8 + 8 + 16

// sessionVersion is the first byte of a cookie.
const sessionVersion = 1

// maxCookie is the maximum length of a cookie's value, as browsers limit it.
const maxCookie = 4000

// tagOf returns a room's identifier in cookies.
func tagOf(url, origin string) (tag [8]byte) {
	sum := sha256.Sum256([]byte("proofline room\n" + url + "\n" + origin))
	copy(tag[:], sum[:])
	return tag
}

// networkOf returns an identifier of a client's network (/24 or /48); never zero.
func networkOf(a netip.Addr) (name [8]byte) {
	a = a.Unmap()
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits)
	text, _ := p.Addr().MarshalBinary()
	sum := sha256.Sum256(append([]byte("proofline network\n"), text...))
	copy(name[:], sum[:])
	name[0] |= 1
	return name
}

// signer signs cookies and checks them.
type signer struct{ buffers sync.Pool }

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

// Labels of the keys derived from [Options.Key].
const (
	sessionLabel = "proofline connector session 1"
	clientLabel  = "proofline connector client 1"
)

// derive derives the key for one purpose.
func derive(key []byte, label string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(label)) // never fails
	return mac.Sum(nil)
}

// newSigner derives the cookie key, because the same key may serve other purposes.
func newSigner(key []byte) *signer {
	own := derive(key, sessionLabel)
	return &signer{sync.Pool{New: func() any { return &cookieBuffer{mac: hmac.New(sha256.New, own)} }}}
}

// format returns the cookie's value.
func (s *signer) format(v *session) string {
	d, _ := s.buffers.Get().(*cookieBuffer)
	defer s.buffers.Put(d)
	b := make([]byte, 0, fixedSize+len(v.token)+sha256.Size)
	b = append(b, sessionVersion)
	b = append(b, v.room[:]...)
	b = append(b, v.ticket[:]...)
	b = append(b, v.pass[:]...)
	for _, n := range []int64{v.issued, v.ends, v.maxEnds, v.length} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, v.bind[:]...)
	b = append(b, v.key[:]...)
	b = append(b, v.token...)
	return base64.RawURLEncoding.EncodeToString(append(b, d.sign(b)...))
}

var strict = base64.RawURLEncoding.Strict()

// parse reads a cookie's value. False: it was not signed by us.
func (s *signer) parse(text string, v *session) bool {
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
	body = body[copy(v.room[:], body):]
	body = body[copy(v.ticket[:], body):]
	body = body[copy(v.pass[:], body):]
	for _, p := range []*int64{&v.issued, &v.ends, &v.maxEnds, &v.length} {
		*p, body = int64(binary.BigEndian.Uint64(body)), body[8:]
	}
	body = body[copy(v.bind[:], body):]
	body = body[copy(v.key[:], body):]
	v.token = string(body)
	return true
}

// findSession finds the request's active session for a room, if the client may
// use it.
func (q *requestCheck) findSession(rm *room, v *session) bool {
	found := false
	q.eachSession(rm, v, func(v *session) bool {
		found = q.mayUse(rm, v)
		return found
	})
	return found
}

// eachSession calls take with each of the request's active sessions for a room,
// until it returns true. Each is read into v.
func (q *requestCheck) eachSession(rm *room, v *session, take func(*session) bool) {
	for _, line := range q.r.Header["Cookie"] {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			value, ok := strings.CutPrefix(strings.Trim(part, " \t"), rm.cookie)
			if ok && q.signer.parse(value, v) && q.isActive(v, rm, q.now) && take(v) {
				return
			}
		}
	}
}

// hasCookie reports whether a request has a cookie of that name. The name ends with =.
func hasCookie(r *http.Request, name string) bool {
	return slices.ContainsFunc(r.Header["Cookie"], func(line string) bool {
		return slices.ContainsFunc(strings.Split(line, ";"), func(part string) bool {
			return strings.HasPrefix(strings.Trim(part, " \t"), name)
		})
	})
}

// isActive reports whether a session belongs to the room and has not ended. It
// does not check the client: see mayUse.
func (c *Connector) isActive(v *session, rm *room, now time.Time) bool {
	if ms := now.UnixMilli(); v.room != rm.tag || ms >= v.maxEnds || ms >= v.ends && ms >= c.sockets.ends(v.pass) {
		return false
	}
	if v.isUnqueued() && rm.Mode != rules.SafetyNet {
		return false
	}
	return !c.ended.has(v.pass)
}

// isUnqueued reports whether the session began without a pass, at an open gate.
func (v *session) isUnqueued() bool { return v.ticket == [16]byte{} }

// isDue reports whether the session should be touched and its cookie renewed.
func (v *session) isDue(now time.Time) bool {
	return now.UnixMilli()-v.issued >= min(touchInterval.Milliseconds(), v.length/3)
}

// slide extends a session from now on.
func (v *session) slide(now time.Time) {
	v.issued = now.UnixMilli()
	v.ends = min(v.issued+v.length, v.maxEnds)
}

// cookieOf returns the Set-Cookie header of a session. It has no Max-Age, because
// the signed value says when the session ends.
func (c *Connector) cookieOf(rm *room, v *session) string {
	return rm.cookie + c.signer.format(v) + "; Path=/; HttpOnly; Secure; SameSite=Lax"
}

// noCookie returns the Set-Cookie header that removes the cookie.
func noCookie(rm *room) string {
	return rm.cookie + "; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"
}

// uuidText returns the canonical text of 16 bytes.
func uuidText(id [16]byte) string {
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	return string(text[:])
}

// parseUUID parses the canonical text form, and no other.
func parseUUID(text string) (id [16]byte, ok bool) {
	if len(text) != 36 {
		return id, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || copy(id[:], b) != 16 {
		return id, false
	}
	return id, uuidText(id) == text
}
