package fairness

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proofline/proofline/vrf"
)

// vectorWitness is a witness of the vectors, with its name and key.
type vectorWitness struct {
	name string
	key  ed25519.PrivateKey
}

func newVectorWitness(name string) vectorWitness {
	seed := sha256.Sum256([]byte("witness key of " + name))
	return vectorWitness{name, ed25519.NewKeyFromSeed(seed[:])}
}

// typed is the public key, after the byte of its signature type.
func (w vectorWitness) typed() []byte {
	return append([]byte{4}, w.key.Public().(ed25519.PublicKey)...)
}

func (w vectorWitness) id() []byte {
	sum := sha256.Sum256(append([]byte(w.name+"\n"), w.typed()...))
	return sum[:4]
}

func (w vectorWitness) vkey() string {
	return fmt.Sprintf("%s+%x+%s", w.name, w.id(), base64.StdEncoding.EncodeToString(w.typed()))
}

// cosign signs a checkpoint at a time in seconds
// (https://c2sp.org/tlog-cosignature).
func (w vectorWitness) cosign(origin string, size uint64, root [HashSize]byte, at Time) (c Cosignature) {
	b := binary.BigEndian.AppendUint64(w.id(), uint64(at/1000))
	return Cosignature(append(b, ed25519.Sign(w.key, cosigned(origin, size, root, at/1000))...))
}

func cosigned(origin string, size uint64, root [HashSize]byte, seconds Time) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n%d\n%s\n", seconds, origin, size, base64.StdEncoding.EncodeToString(root[:]))
}

// VerifyCosignature implements [Oracle].
func (o *realOracle) VerifyCosignature(witness string, size uint64, root [HashSize]byte, c Cosignature) (Time, error) {
	parts := strings.SplitN(witness, "+", 3)
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return 0, err
	}
	seconds := Time(binary.BigEndian.Uint64(c[4:]))
	if hex.EncodeToString(c[:4]) != parts[1] || !ed25519.Verify(key[1:], cosigned(o.origin, size, root, seconds), c[12:]) {
		return 0, errors.New("no cosignature of this")
	}
	return seconds * 1000, nil
}

// makeWitnessedRoom plays a room with a beacon and two witnesses, of whom both should cosign: two visitors
// join in the first window, three in the second, whose freeze is late and has one cosignature.
func makeWitnessedRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	a, b := newVectorWitness("witness-a.example.org"), newVectorWitness("witness-b.example.net/w")
	chain := newChain(t)
	p := vectorPolicy(t, key)
	p.Beacon, p.Witnesses, p.Quorum = &Beacon{chain.Chain(), 5000}, []string{a.vkey(), b.vkey()}, 2
	s := &story{t: t, key: key, oracle: realOracle{origin: p.Origin}}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	for _, broken := range []func(*Policy){
		func(p *Policy) { p.Beacon = nil }, func(p *Policy) { p.Quorum = 3 }, func(p *Policy) { p.Witnesses[1] = p.Witnesses[0] },
		func(p *Policy) { p.Beacon.Margin = 4999 }, func(p *Policy) { p.Quorum = 1 }, func(p *Policy) { p.Beacon.PublicKey[95] ^= 1 },
	} {
		bad, beacon := p, *p.Beacon
		bad.Beacon, bad.Witnesses = &beacon, []string{p.Witnesses[0], p.Witnesses[1]}
		broken(&bad)
		s.refuse(RulePolicy, &Room{bad})
	}
	s.must(&Room{p})

	draw := func(frozen Time, witnesses ...vectorWitness) {
		f, alpha, _ := s.NextFreeze(frozen, s.oracle.Root())
		proof, beta := key.Prove(alpha)
		f.Proof = [ProofSize]byte(proof)
		for _, round := range []uint64{0, f.Round - 1, f.Round + 1} {
			bad := *f
			bad.Round = round
			s.refuse(RuleFreeze, &bad)
		}
		s.must(f)
		size, root := uint64(len(s.out.Entries)), s.oracle.Root()
		s.refuse(RuleSkip, &Skip{frozen, s.arrivals.At(s.windows.all[s.windows.drawn].base).ticket, RevokedBot})
		if s.windows.drawn == 0 {
			s.join(frozen+1000, 3) // the tree grows
		}
		pending := s.Pending()[0]
		signature, err := chain.Sign(pending.Round)
		if err != nil {
			t.Fatal(err)
		}
		var list []Cosignature
		for _, w := range witnesses {
			list = append(list, w.cosign(p.Origin, size, root, pending.Due-3000))
		}
		d, _ := s.NextDraw(pending.Due, signature, list...)
		with := func(rule Rule, change func(*Draw)) {
			bad := *d
			change(&bad)
			bad.Seed = NewSeed(alpha, beta, f.Round, bad.Signature)
			s.refuse(rule, &bad)
		}
		other, _ := chain.Sign(f.Round - 1)
		with(RuleBeacon, func(e *Draw) { e.Signature = nil })
		with(RuleBeacon, func(e *Draw) { e.Signature = other })
		with(RuleBeacon, func(e *Draw) { e.Time-- })
		for _, at := range []Time{frozen - 3000, pending.Due - 2000, pending.Due} {
			with(RuleWitness, func(e *Draw) { e.Cosignatures = []Cosignature{b.cosign(p.Origin, size, root, at)} })
		}
		with(RuleWitness, func(e *Draw) { e.Cosignatures = []Cosignature{b.cosign(p.Origin, size+1, s.oracle.Root(), frozen)} })
		with(RuleWitness, func(e *Draw) { e.Cosignatures = []Cosignature{b.cosign("other.example.com", size, root, frozen)} })
		with(RuleWitness, func(e *Draw) {
			e.Cosignatures = []Cosignature{b.cosign(p.Origin, size, root, frozen), a.cosign(p.Origin, size, root, frozen)}
		})
		bad := *d
		bad.Seed = NewSeed(alpha, beta, f.Round, nil)
		s.refuse(RuleSeed, &bad)
		s.draw(d, alpha, beta)
		for e, ok := s.NextAssign(); ok; e, ok = s.NextAssign() {
			s.assign(&e)
		}
	}
	s.join(p.Opens, 1)
	s.join(p.Opens+59_000, 2)
	draw(p.Starts, a, b)
	s.join(p.Starts+8000, 4, 5)
	draw(p.Starts+40_000, b) // ten seconds late
	s.must(&End{p.Starts + 70_000})
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}
