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

// CookiePrefix and the room's name are the name of a session's cookie.
const CookiePrefix = "__Host-proofline-pass."

// session is a visitor's time on the site, as the cookie says it. Times are
// milliseconds since 1970.
type session struct {
	room    [8]byte  // which room: see tagOf
	ticket  [16]byte // whose; zero: of a free session
	pass    [16]byte // of which pass; of a free session its own id
	issued  int64    // when this cookie was made
	ends    int64    // unless the visitor is active
	maxEnds int64    // beyond which nothing helps
	length  int64    // how long it lasts from each touch on
	bind    [8]byte  // the network or the family of browsers it is tied to, zero for none
	key     [16]byte // the thumbprint of the browser's key, zero for none
	token   string   // the pass, which touches and releases show; of a free session none
}

// fixedSize is that of a session's members but the token.
const fixedSize = 1 + 8 + 16 + 16 + 4*8 + 8 + 16

// sessionVersion is the first byte of a cookie.
const sessionVersion = 1

// maxCookie is how long a cookie's value may be: what browsers keep.
const maxCookie = 4000

// tagOf tells rooms apart in cookies.
func tagOf(url, origin string) (tag [8]byte) {
	sum := sha256.Sum256([]byte("proofline room\n" + url + "\n" + origin))
	copy(tag[:], sum[:])
	return tag
}

// networkOf names a visitor's network, which is never zero.
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

// desk is what it takes to read or write one cookie.
type cookieBuffer struct {
	mac  hash.Hash
	text [maxCookie]byte // in base64url
	body [maxCookie]byte
	sum  [sha256.Size]byte
}

// sign returns the signature of a cookie's bytes, in memory of the desk.
func (d *cookieBuffer) sign(b []byte) []byte {
	d.mac.Reset()
	_, _ = d.mac.Write(b)
	return d.mac.Sum(d.sum[:0])
}

// Labels of what is derived from the key.
const (
	sessionLabel = "proofline connector session 1"
	clientLabel  = "proofline connector client 1"
)

// derive returns the key for one purpose.
func derive(key []byte, label string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(label)) // never fails
	return mac.Sum(nil)
}

// newSigner derives the key of cookies, so that the same key may serve
// something else.
func newSigner(key []byte) *signer {
	own := derive(key, sessionLabel)
	return &signer{sync.Pool{New: func() any { return &cookieBuffer{mac: hmac.New(sha256.New, own)} }}}
}

// format returns a cookie's value.
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

// parse reads a cookie's value. False: it is not ours, or was changed.
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

// find returns the request's session for a door, if one goes on and the request
// shows that it comes from the browser that has it.
func (q *requestCheck) findSession(rm *room, v *session) bool {
	found := false
	q.eachSession(rm, v, func(v *session) bool {
		found = q.mayUse(rm, v)
		return found
	})
	return found
}

// each reads the request's sessions of a door that go on into v, one after the
// other, until one is taken.
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

// hasCookie tells whether a request has a cookie of that name, which ends with =.
func hasCookie(r *http.Request, name string) bool {
	return slices.ContainsFunc(r.Header["Cookie"], func(line string) bool {
		return slices.ContainsFunc(strings.Split(line, ";"), func(part string) bool { return strings.HasPrefix(strings.Trim(part, " \t"), name) })
	})
}

// goesOn reports whether a session is one of the door and not over. Whether the
// client may use it is for isHolder to say.
func (c *Connector) isActive(v *session, rm *room, now time.Time) bool {
	if ms := now.UnixMilli(); v.room != rm.tag || ms >= v.maxEnds || ms >= v.ends && ms >= c.sockets.ends(v.pass) {
		return false
	}
	if v.isUnqueued() && rm.Mode != rules.SafetyNet {
		return false
	}
	return !c.ended.has(v.pass)
}

// isFree tells whether the session is of a visitor who passed an open gate.
func (v *session) isUnqueued() bool { return v.ticket == [16]byte{} }

// isDue tells whether it is time to tell the room that the visitor is there.
func (v *session) isDue(now time.Time) bool {
	return now.UnixMilli()-v.issued >= min(touchInterval.Milliseconds(), v.length/3)
}

// slide makes a session last longer from now on.
func (v *session) slide(now time.Time) {
	v.issued = now.UnixMilli()
	v.ends = min(v.issued+v.length, v.maxEnds)
}

// cookieOf returns the Set-Cookie header of a session: until the browser
// closes, for the cookie itself says how long it is good.
func (c *Connector) cookieOf(rm *room, v *session) string {
	return rm.cookie + c.signer.format(v) + "; Path=/; HttpOnly; Secure; SameSite=Lax"
}

// noCookie returns the header that takes the cookie away.
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

// parseUUID reads the canonical text, and no other.
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
