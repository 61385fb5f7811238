package connector

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// A session may be tied to a key that a browser has made and cannot give away
// (rules/FORMAT.md, "Sessions and browsers"). Each proof that it has the key is a
// cookie that scripts set: the time, the public key, and a signature.
const (
	proofPrefix = "__Host-proofline-proof."
	proofLabel  = "proofline proof 1\n"
	proofSize   = 8 + publicSize + 64
	publicSize  = 65 // of a point on P-256 (SEC 1, 2.3.3), uncompressed
)

// How old a proof may be, and how far ahead.
const (
	pageProofTTL = 2 * time.Minute  // where a page is opened, which can prove it anew
	minProofTTL  = 10 * time.Minute // else; or as long as the session lasts from each activity on
	proofSkew    = time.Minute
)

// maxLooks is how many proofs of a request are looked at. A browser sends one for
// each room; of more, the signatures would keep the processor busy.
const maxProofsRead = 16

// maxProofs is how many proofs are known to be right without another look.
const maxProofs = 50_000

// familyOf names the family of a browser: its User-Agent without versions, which
// change while a browser runs. It is never zero.
func familyOf(agent string) (name [8]byte) {
	b := make([]byte, 0, 256)
	b = append(b, "proofline browser\n"...)
	for i := range len(agent) {
		if c := agent[i]; ('0' > c || c > '9') && c != '.' && c != '_' {
			b = append(b, c)
		}
	}
	sum := sha256.Sum256(b)
	copy(name[:], sum[:])
	name[0] |= 1
	return name
}

// subjectOf is what a browser's proofs of a session are about: the session, by a
// name that tells nothing of the pass.
func subjectOf(rm *room, v *session) string {
	sum := sha256.Sum256(append([]byte("proofline visit\n"+rm.URL+"\n"), v.pass[:]...))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// proof is a proof as its cookie has it.
type proof struct {
	at     int64 // ms since 1970
	public [publicSize]byte
	sum    [64]byte // r and s (IEEE P1363)
}

func parseProof(text string) (p proof, ok bool) {
	var b [proofSize]byte
	if len(text) != strict.EncodedLen(proofSize) {
		return p, false
	}
	if _, err := strict.Decode(b[:], []byte(text)); err != nil {
		return p, false
	}
	p.at = int64(binary.BigEndian.Uint64(b[:8]))
	copy(p.public[:], b[8:])
	copy(p.sum[:], b[8+publicSize:])
	return p, true
}

// thumbprint names the key of a proof, as sessions do.
func (p *proof) thumbprint() (key [16]byte) {
	sum := sha256.Sum256(p.public[:])
	copy(key[:], sum[:])
	return key
}

// isOf reports whether the proof is about a subject.
func (p *proof) isOf(subject string) bool {
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), p.public[:])
	if err != nil {
		return false
	}
	hash := sha256.Sum256([]byte(proofLabel + subject + "\n" + strconv.FormatInt(p.at, 10)))
	return ecdsa.Verify(public, hash[:], new(big.Int).SetBytes(p.sum[:32]), new(big.Int).SetBytes(p.sum[32:]))
}

// isWithin reports whether the proof was made at most so long ago.
func (p *proof) isWithin(age time.Duration, now time.Time) bool {
	ms := now.UnixMilli()
	return p.at <= ms+proofSkew.Milliseconds() && p.at > ms-age.Milliseconds()
}

// proofs remembers proofs that are right, so that each is looked at once. The
// zero value is ready.
type proofs struct {
	mu    sync.Mutex
	known map[knownProof]int64 // when it was made
}

// knownProof is the cookie of a proof, and the pass of the session.
type knownProof struct {
	text string
	pass [16]byte
}

func (k *proofs) has(id knownProof) (at int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok = k.known[id]
	return at, ok
}

func (k *proofs) add(id knownProof, at int64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[knownProof]int64{}
	}
	if len(k.known) >= maxProofs {
		k.shrink(now.Add(-pageProofTTL).UnixMilli())
	}
	id.text = strings.Clone(id.text) // not the whole header
	k.known[id] = at
}

// shrink forgets proofs from before a time, or else about a tenth of all.
func (k *proofs) shrink(before int64) {
	for id, at := range k.known {
		if at < before {
			delete(k.known, id)
		}
	}
	for id := range k.known {
		if len(k.known) < maxProofs*9/10 {
			return
		}
		delete(k.known, id)
	}
}

// proves reports whether the request has a proof for a session that is at most so
// old, by the session's key; a session without a key takes any.
func (q *requestCheck) proves(rm *room, v *session, age time.Duration) (key [16]byte, ok bool) {
	for _, line := range q.r.Header["Cookie"] {
		for line != "" {
			var part string
			part, line, _ = strings.Cut(line, ";")
			text, isProof := strings.CutPrefix(strings.Trim(part, " \t"), rm.proof)
			if !isProof {
				continue
			}
			if q.proofsRead++; q.proofsRead > maxProofsRead {
				return [16]byte{}, false
			}
			p, ok := parseProof(text)
			if key = p.thumbprint(); !ok || !p.isWithin(age, q.now) || v.key != [16]byte{} && v.key != key {
				continue
			}
			id := knownProof{text, v.pass}
			if _, isKnown := q.proven.has(id); isKnown {
				return key, true
			}
			if p.isOf(subjectOf(rm, v)) {
				q.proven.add(id, p.at, q.now)
				return key, true
			}
		}
	}
	return [16]byte{}, false
}

// isHolder reports whether the client may use a session: it proves that it has
// the key that the session is tied to, or is of the network or the family, and
// is not one of too many clients. Those with a key count as well, because a
// program can hand out its key, or the proofs that it makes with it.
func (q *requestCheck) mayUse(rm *room, v *session) bool {
	agent := q.r.UserAgent()
	if v.key != [16]byte{} && rm.Bind == rules.BindBrowser {
		age := pageProofTTL
		if !q.opensPage() {
			age = max(minProofTTL, time.Duration(v.length)*time.Millisecond)
		}
		if _, ok := q.proves(rm, v, age); !ok {
			return false
		}
	} else if v.bind != rm.bindOf(q.client, agent) {
		return false
	}
	if rm.Bind != rules.BindBrowser {
		return true
	}
	if q.holder = clientID(q.client, agent); q.holders.add(v.pass, q.holder, q.now) {
		return true
	}
	q.counts.copied.Add(1)
	return false
}

// opensPage reports whether a request opens a page, and can be sent by another.
func (q *requestCheck) opensPage() bool {
	return (q.r.Method == http.MethodGet || q.r.Method == http.MethodHead) && isNavigation(q.r)
}
