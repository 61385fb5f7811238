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

// A session may be tied to a key that a browser has made and cannot export
// (rules/FORMAT.md, "Sessions and browsers"). A proof of possession is a cookie set
// by a script: the time, the public key, and a signature.
const (
	proofPrefix = "__Host-proofline-proof."
	proofLabel  = "proofline proof 1\n"
	proofSize   = 8 + publicSize + 64
	publicSize  = 65 // uncompressed point on P-256 (SEC 1, 2.3.3)
)

// Maximum age of a proof.
const (
	pageProofTTL = 2 * time.Minute  // when loading a page, which can renew it
	minProofTTL  = 10 * time.Minute // otherwise, or the session's length if that is longer
	proofSkew    = time.Minute
)

// maxProofsRead limits the proofs checked per request, because signatures cost CPU
// time. A browser sends one per room.
const maxProofsRead = 16

// maxProofs limits the remembered valid proofs.
const maxProofs = 50_000

// familyOf returns an identifier of a browser family: a hash of the User-Agent
// without version numbers, which change with updates. It is never zero.
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

// subjectOf returns the subject of a session's proofs: an identifier that does not
// reveal the pass.
func subjectOf(rm *room, v *session) string {
	sum := sha256.Sum256(append([]byte("proofline visit\n"+rm.URL+"\n"), v.pass[:]...))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// proof is a parsed proof cookie.
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

// thumbprint returns the key's identifier in sessions.
func (p *proof) thumbprint() (key [16]byte) {
	sum := sha256.Sum256(p.public[:])
	copy(key[:], sum[:])
	return key
}

// isOf reports whether the signature is valid for a subject.
func (p *proof) isOf(subject string) bool {
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), p.public[:])
	if err != nil {
		return false
	}
	hash := sha256.Sum256([]byte(proofLabel + subject + "\n" + strconv.FormatInt(p.at, 10)))
	return ecdsa.Verify(public, hash[:], new(big.Int).SetBytes(p.sum[:32]), new(big.Int).SetBytes(p.sum[32:]))
}

// isWithin reports whether the proof has at most the given age.
func (p *proof) isWithin(age time.Duration, now time.Time) bool {
	ms := now.UnixMilli()
	return p.at <= ms+proofSkew.Milliseconds() && p.at > ms-age.Milliseconds()
}

// proofs remembers valid proofs, so that each signature is verified once. The zero
// value is ready.
type proofs struct {
	mu    sync.Mutex
	known map[knownProof]int64 // time of the proof
}

// knownProof is the cookie of a proof, with the session's pass.
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
	id.text = strings.Clone(id.text) // do not keep the whole header in memory
	k.known[id] = at
}

// shrink removes proofs from before a time, or else about a tenth.
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

// proves reports whether the request has a proof for a session, of at most the
// given age. A session without a key accepts any key.
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

// mayUse reports whether the client may use a session: it proves possession of the
// session's key, or matches its network or browser family, and not too many clients
// share the session. Sessions with a key are counted, too, because a program can
// share its key or its proofs.
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

// opensPage reports whether a request loads a page without a body.
func (q *requestCheck) opensPage() bool {
	return (q.r.Method == http.MethodGet || q.r.Method == http.MethodHead) && isNavigation(q.r)
}
