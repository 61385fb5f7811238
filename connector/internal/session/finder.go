package session

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// maxProofsRead limits the proofs checked per request, because signatures cost CPU
// time. A browser sends one per room.
const maxProofsRead = 16

// Finder finds the sessions of one request that its client may use.
type Finder struct {
	Store   *Store
	Request *http.Request
	Client  netip.Addr
	Now     time.Time
	Copied  *atomic.Uint64 // counts sessions refused because too many clients share them

	proofsRead int
	holder     uint64
}

// Holder identifies the client that uses the session found; 0: it is not counted.
func (f *Finder) Holder() uint64 { return f.holder }

// Find finds the request's active session for a room, if the client may use it.
func (f *Finder) Find(rm *Room, v *Session) bool {
	found := false
	f.Each(rm, v, func(v *Session) bool {
		found = f.mayUse(rm, v)
		return found
	})
	return found
}

// Each calls take with each of the request's active sessions for a room, until it
// returns true. Each is read into v.
func (f *Finder) Each(rm *Room, v *Session, take func(*Session) bool) {
	for _, line := range f.Request.Header["Cookie"] {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			value, ok := strings.CutPrefix(strings.Trim(part, " \t"), rm.cookie)
			if ok && f.Store.signer.Parse(value, v) && f.Store.IsActive(rm, v, f.Now) && take(v) {
				return
			}
		}
	}
}

// CanProve reports whether the request loads a page, and has an active session for
// the room that is tied to a key.
func (f *Finder) CanProve(rm *Room) bool {
	can := false
	if rm.Bind == rules.BindBrowser && opensPage(f.Request) {
		f.Each(rm, new(Session), func(v *Session) bool {
			can = v.Key != [16]byte{}
			return can
		})
	}
	return can
}

// Proves reports whether the request has a proof for a session, of at most the given age. A session
// without a key accepts any key.
func (f *Finder) Proves(rm *Room, v *Session, age time.Duration) (key [16]byte, ok bool) {
	for _, line := range f.Request.Header["Cookie"] {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			text, isProof := strings.CutPrefix(strings.Trim(part, " \t"), rm.proof)
			if !isProof {
				continue
			}
			if f.proofsRead++; f.proofsRead > maxProofsRead {
				return [16]byte{}, false
			}
			p, ok := parseProof(text)
			if key = p.thumbprint(); !ok || !p.isWithin(age, f.Now) || v.Key != [16]byte{} && v.Key != key {
				continue
			}
			id := knownProof{text, v.Pass}
			if _, isKnown := f.Store.proven.has(id); isKnown {
				return key, true
			}
			if p.isOf(rm.Subject(v)) {
				f.Store.proven.add(id, p.at, f.Now)
				return key, true
			}
		}
	}
	return [16]byte{}, false
}

// mayUse reports whether the client may use a session: it proves possession of the
// session's key, or matches its network or browser family, and not too many clients
// share the session. Sessions with a key are counted, too, because a program can
// share its key or its proofs.
func (f *Finder) mayUse(rm *Room, v *Session) bool {
	agent := f.Request.UserAgent()
	if v.Key != [16]byte{} && rm.Bind == rules.BindBrowser {
		age := PageProofTTL
		if !opensPage(f.Request) {
			age = max(minProofTTL, time.Duration(v.Length)*time.Millisecond)
		}
		if _, ok := f.Proves(rm, v, age); !ok {
			return false
		}
	} else if v.Bind != bindOf(rm.Bind, f.Client, agent) {
		return false
	}
	if rm.Bind != rules.BindBrowser {
		return true
	}
	if f.holder = clientID(f.Client, agent); f.Store.Use(v.Pass, f.holder, f.Now) {
		return true
	}
	f.Copied.Add(1)
	return false
}

// IsNavigation reports whether a browser loads a page, which can be redirected. Scripts that fetch
// HTML send X-Requested-With: XMLHttpRequest; apps that show a page send their own names there.
func IsNavigation(r *http.Request) bool {
	isPageMethod := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost
	if r.Header["Upgrade"] != nil || !isPageMethod {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return r.Method != http.MethodPost && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.EqualFold(r.Header.Get("X-Requested-With"), "XMLHttpRequest")
}

// opensPage reports whether a request loads a page without a body.
func opensPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && IsNavigation(r)
}
