package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"
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
	PageProofTTL = 2 * time.Minute  // when a page is loaded, which can renew the proof
	minProofTTL  = 10 * time.Minute // for other requests, or the session's length if that is longer
	proofSkew    = time.Minute
)

// maxProofs limits the remembered valid proofs.
const maxProofs = 50_000

// Subject returns the subject of a session's proofs: an identifier that does not
// reveal the pass.
func (rm *Room) Subject(v *Session) string {
	sum := sha256.Sum256(append([]byte("proofline visit\n"+rm.URL+"\n"), v.Pass[:]...))
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
	known map[knownProof]int64 // times of the proofs
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
		k.shrink(now.Add(-PageProofTTL).UnixMilli())
	}
	id.text = strings.Clone(id.text) // so that the whole header is not kept in memory
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
