package credential

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"filippo.io/edwards25519"
	"github.com/cloudflare/circl/blindsign/blindrsa"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

// verdicts are the words of the vectors for errors.
var verdicts = map[string]error{
	"accepted": nil, "method": ErrMethod, "key": ErrKey, "syntax": ErrSyntax, "nullifier": ErrNullifier, "size": ErrSize,
	"range": ErrRange, "signature": ErrSignature, "round": ErrRound, "work": ErrWork,
}

func verdictOf(err error) string {
	for word, want := range verdicts {
		if err == nil && want == nil || want != nil && errors.Is(err, want) {
			return word
		}
	}
	return "unknown error " + err.Error()
}

// vectors is the shape of testdata/vectors.json, for a second implementation in any language. Bytes are
// lower-case hex.
type vectors struct {
	About       string             `json:"about"`
	Messages    []messageVector    `json:"messages"`
	Methods     []methodVector     `json:"methods"`
	Credentials []credentialVector `json:"credentials"`
}

type subjectVector struct {
	Room   string `json:"room"` // SHA-256 of the room entry
	Lane   string `json:"lane"`
	Ticket string `json:"ticket"`
	Round  string `json:"round"` // the beacon's signature
}

type messageVector struct {
	Subject   subjectVector `json:"subject"`
	Method    string        `json:"method"` // its name
	Nullifier string        `json:"nullifier"`
	Message   string        `json:"message"`
}

type methodVector struct {
	About   string `json:"about"`
	Method  string `json:"method"` // as in a policy, after "method "
	Verdict string `json:"verdict"`
}

type credentialVector struct {
	About      string        `json:"about"`
	Method     string        `json:"method"` // as in a policy, after "method "
	Subject    subjectVector `json:"subject"`
	Credential string        `json:"credential"` // as in an entry
	Verdict    string        `json:"verdict"`
}

func (s Subject) vector() subjectVector {
	return subjectVector{hex.EncodeToString(s.Room[:]), s.Lane, hex.EncodeToString(s.Ticket[:]), hex.EncodeToString(s.Round)}
}

func (v subjectVector) subject(t testing.TB) Subject {
	return Subject{[32]byte(mustHex(t, v.Room)), v.Lane, [16]byte(mustHex(t, v.Ticket)), mustHex(t, v.Round)}
}

func mustHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hashOf(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// The subject and keys of the vectors.
var (
	subject = Subject{
		Room: hashOf("a room entry"), Lane: "general", Ticket: [16]byte(bytes.Repeat([]byte{0x8a}, 16)),
		Round: bytes.Repeat([]byte{0xb7, 0x05}, 24),
	}
	nullifier   = func() []byte { h := hashOf("account 1"); return h[:] }()
	issuerKey   = func() ed25519.PrivateKey { h := hashOf("issuer"); return ed25519.NewKeyFromSeed(h[:]) }()
	issuer      = Method{Name: "club", Kind: Signed, Key: hex.EncodeToString(issuerKey[32:]), Limit: 5000}
	blindIssuer = Method{Name: "phone", Kind: Blind, Key: testKey(Exponent).N.Text(16)}
	worker      = Method{Name: "task", Kind: Work, Bits: 12}
)

// testKey is the private key testRSA2048 of RFC 9500, section 2.1, with another public exponent.
func testKey(e int64) *rsa.PrivateKey {
	read := func(s string) *big.Int {
		n, _ := new(big.Int).SetString(s, 16)
		return n
	}
	p := read("dd105702382f232b3681f53791e22617c7bf4e9acb81ed48daf6d6995da3eab642839aff012d2ea628b90af279fd3e6f7c93cd80f072f01f" +
		"f2443b3ee8f24ed469a79613a41bd24020f92fd11059bd1d0f301b5ba7a9d3637ca8d65c1a9815417d8eab734b0b4f3a2c661d9a1a82f3ac734c4" +
		"0530669ab8e473045a58e65539d")
	q := read("ccf1e5bb90c8e9781ea75bebf10bc252e11eb023a0260f1887552a56863f4a6421e8c600bf523d6cb1b0adbdd65bfee4a88a037e3d1a415e" +
		"5bb95648da5a0ca26b54f4a63948522c3d5f89b94a72efff95134d5940ce45758f308980908956588eef575b3e4bc4c368cfe813ee9c252c2b02e" +
		"0df91f1aa01938d38685d60ba6f")
	one := big.NewInt(1)
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	return &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: int(e)},
		D: new(big.Int).ModInverse(big.NewInt(e), phi), Primes: []*big.Int{p, q}}
}

// blindly makes a blind signature the whole way: blind, sign, unblind.
func blindly(t testing.TB, key *rsa.PrivateKey, message []byte) []byte {
	t.Helper()
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	request, state, err := client.Blind(rand.Reader, message)
	if err != nil {
		t.Fatal(err)
	}
	response, err := blindrsa.NewSigner(key).BlindSign(request)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// nonce finds the first nonce with exactly so many zero bits.
func nonce(s Subject, method string, zeros int) []byte {
	message := append(s.AppendMessage(nil, method, nil), s.Round...)
	for i := uint64(0); ; i++ {
		n := binary.BigEndian.AppendUint64(nil, i)
		if ZeroBits(append(message[:len(message):len(message)], n...)) == zeros {
			return n
		}
	}
}

// scalar returns a scalar of Ed25519 from a text.
func scalar(text string) *edwards25519.Scalar {
	h := sha512.Sum512([]byte(text))
	s, _ := new(edwards25519.Scalar).SetUniformBytes(h[:])
	return s
}

// forge signs with the secret scalar a of a key that may have any encoding, for any encoding of a commitment
// to r.
func forge(key, commitment []byte, a, r *edwards25519.Scalar, message []byte) []byte {
	h := sha512.Sum512(slices.Concat(commitment, key, message))
	k, _ := new(edwards25519.Scalar).SetUniformBytes(h[:])
	return append(slices.Clone(commitment), new(edwards25519.Scalar).MultiplyAdd(k, a, r).Bytes()...)
}

// torsion is a point of order 8.
func torsion(t testing.TB) *edwards25519.Point {
	// https://datatracker.ietf.org/doc/html/draft-irtf-cfrg-ristretto255-decaf448, and many test suites
	p, err := new(edwards25519.Point).SetBytes(mustHex(t, "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func signedMethod(key []byte) string {
	return string(Method{Name: "club", Kind: Signed, Key: hex.EncodeToString(key)}.AppendText(nil))
}

func blindMethod(n *big.Int) string {
	return string(Method{Name: "phone", Kind: Blind, Key: hex.EncodeToString(n.Bytes())}.AppendText(nil))
}

// weakKeys are Ed25519 keys that are refused.
func weakKeys(t testing.TB) (list []methodVector) {
	add := func(about string, key []byte) { list = append(list, methodVector{about, signedMethod(key), "key"}) }
	multiple := edwards25519.NewIdentityPoint()
	for i := range 8 {
		add(fmt.Sprintf("small order, point %d", i), multiple.Bytes())
		multiple = new(edwards25519.Point).Add(multiple, torsion(t))
	}
	honest, _ := new(edwards25519.Point).SetBytes(issuerKey[32:])
	add("a point of mixed order", new(edwards25519.Point).Add(honest, torsion(t)).Bytes())
	order2, _ := new(edwards25519.Point).SetBytes(mustHex(t, "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"))
	add("a point of order 2L", new(edwards25519.Point).Add(honest, order2).Bytes())
	for y := range 19 { // y + p for all y that are points: p ends with ed
		for _, sign := range []byte{0x7f, 0xff} {
			b := append(append([]byte{0xed + byte(y)}, bytes.Repeat([]byte{0xff}, 30)...), sign)
			if _, err := new(edwards25519.Point).SetBytes(b); err == nil {
				add(fmt.Sprintf("not canonical: y = p + %d, sign %d", y, sign>>7), b)
			}
		}
	}
	add("not canonical: x = 0 with its sign set", append(append([]byte{1}, make([]byte, 30)...), 0x80))
	add("not a point", append([]byte{2}, make([]byte, 31)...))
	add("31 bytes", issuerKey[33:])
	add("33 bytes", append(slices.Clone(issuerKey[32:]), 0))
	return list
}

func methodVectors(t testing.TB) []methodVector {
	n := testKey(Exponent).N
	wide := new(big.Int).Lsh(n, 2048)
	wide.SetBit(wide, 0, 1)
	list := []methodVector{
		{"an Ed25519 key", string(issuer.AppendText(nil)), "accepted"},
		{"an RSA key of 2048 bits", string(blindIssuer.AppendText(nil)), "accepted"},
		{"an RSA key of 4096 bits", blindMethod(wide), "accepted"},
		{"work", string(worker.AppendText(nil)), "accepted"},
		{"a name of 32 characters", "0-abcdefghijklmnopqrstuvwxyz9876 work 40", "accepted"},
		{"the largest limit", strings.TrimSuffix(signedMethod(issuerKey[32:]), "0") + "4294967295", "accepted"},
		{"RSA: even", blindMethod(new(big.Int).Sub(n, big.NewInt(1))), "key"},
		{"RSA: 2040 bits", blindMethod(new(big.Int).SetBit(new(big.Int).Rsh(n, 8), 0, 1)), "key"},
		{"RSA: 2047 bits", blindMethod(new(big.Int).SetBit(new(big.Int).Rsh(n, 1), 0, 1)), "key"},
		{"RSA: 4104 bits", blindMethod(new(big.Int).SetBit(new(big.Int).Lsh(wide, 8), 0, 1)), "key"},
		{"RSA: 4097 bits", blindMethod(new(big.Int).SetBit(new(big.Int).Lsh(wide, 1), 0, 1)), "key"},
		{"RSA: a zero in front", "phone blind 00" + n.Text(16) + " 0", "key"},
		{"RSA: upper case", "phone blind " + strings.ToUpper(n.Text(16)) + " 0", "key"},
		{"half a byte", "phone blind " + n.Text(16) + "a 0", "key"},
		{"no key", "phone signed  0", "key"},
		{"no bits", "task work 0", "method"}, {"41 bits", "task work 41", "method"},
		{"256 bits", "task work 256", "method"}, {"a zero in front", "task work 012", "method"},
		{"work with a limit", "task work 12 5", "method"}, {"no limit", strings.TrimSuffix(signedMethod(issuerKey[32:]), " 0"), "method"},
		{"limit 2^32", signedMethod(issuerKey[32:]) + "4294967296", "method"},
		{"limit with a zero in front", signedMethod(issuerKey[32:]) + "1", "method"},
		{"no name", " work 12", "method"}, {"33 characters", strings.Repeat("a", 33) + " work 12", "method"},
		{"upper case", "Task work 12", "method"}, {"another kind", "task vdf 12", "method"},
		{"two spaces", "task  work 12", "method"}, {"a space at the end", "task work 12 ", "method"}, {"nothing", "", "method"},
	}
	return append(list, weakKeys(t)...)
}

func messageVectors() (list []messageVector) {
	for _, m := range []struct {
		lane, method string
		nullifier    []byte
	}{{"general", "club", nullifier}, {"general", "phone", nil}, {"g", "eneral", nil}} {
		s := subject
		s.Lane = m.lane
		list = append(list, messageVector{s.vector(), m.method, hex.EncodeToString(m.nullifier),
			hex.EncodeToString(s.AppendMessage(nil, m.method, m.nullifier))})
	}
	return list
}

// writer collects vectors of credentials.
type writer struct {
	t    testing.TB
	list []credentialVector
}

func (w *writer) add(about, verdict string, m Method, s Subject, c Credential) {
	w.text(about, verdict, m, s, string(c.AppendText(nil)))
}

func (w *writer) text(about, verdict string, m Method, s Subject, text string) {
	w.list = append(w.list, credentialVector{about, string(m.AppendText(nil)), s.vector(), text, verdict})
}

// others adds a credential that is good for subject with another room, lane or ticket.
func (w *writer) others(verdict string, m Method, c Credential) {
	room, lane, ticket := subject, subject, subject
	room.Room[31] ^= 1
	lane.Lane = "members"
	ticket.Ticket[0] ^= 1
	w.add("another room", verdict, m, room, c)
	w.add("another lane", verdict, m, lane, c)
	w.add("another ticket", verdict, m, ticket, c)
	renamed := m
	renamed.Name += "-2"
	c.Method = renamed.Name
	w.add("another method with the same key", verdict, renamed, subject, c)
}

func (w *writer) signed() {
	message := subject.AppendMessage(nil, "club", nullifier)
	good := Credential{"club", nullifier, ed25519.Sign(issuerKey, message)}
	with := func(evidence []byte) Credential { return Credential{"club", nullifier, evidence} }
	w.add("signed", "accepted", issuer, subject, good)
	w.others("signature", issuer, good)
	other := slices.Clone(nullifier)
	other[0] ^= 1
	w.add("another nullifier", "signature", issuer, subject, Credential{"club", other, good.Evidence})
	w.add("no nullifier", "nullifier", issuer, subject, Credential{"club", nil, good.Evidence})
	w.add("63 bytes", "size", issuer, subject, with(good.Evidence[:63]))
	w.add("65 bytes", "size", issuer, subject, with(append(slices.Clone(good.Evidence), 0)))
	seed := hashOf("foreign issuer")
	w.add("a foreign issuer", "signature", issuer, subject, with(ed25519.Sign(ed25519.NewKeyFromSeed(seed[:]), message)))
	w.add("all zeros", "signature", issuer, subject, with(make([]byte, 64)))

	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(good.Evidence[32:])
	slices.Reverse(s)
	s = new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(s)
	w.add("S + L", "range", issuer, subject, with(slices.Concat(good.Evidence[:32], s)))
	s = order.FillBytes(make([]byte, 32))
	slices.Reverse(s)
	w.add("S = L", "range", issuer, subject, with(slices.Concat(good.Evidence[:32], s)))

	// The issuer itself crafts these.
	a, r, zero := scalar("secret"), scalar("nonce"), new(edwards25519.Scalar)
	key := new(edwards25519.Point).ScalarBaseMult(a).Bytes()
	crafted := Method{Name: "club", Kind: Signed, Key: hex.EncodeToString(key)}
	commitment := new(edwards25519.Point).ScalarBaseMult(r)
	identity := append([]byte{1}, make([]byte, 31)...)
	w.add("crafted honestly", "accepted", crafted, subject, with(forge(key, commitment.Bytes(), a, r, message)))
	w.add("R is the identity", "accepted", crafted, subject, with(forge(key, identity, a, zero, message)))
	w.add("R is not canonical: y = p + 1", "signature", crafted, subject,
		with(forge(key, append(append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f), a, zero, message)))
	w.add("R is not canonical: x = 0 with its sign set", "signature", crafted, subject,
		with(forge(key, append(append([]byte{1}, make([]byte, 30)...), 0x80), a, zero, message)))
	w.add("R of mixed order, right by the equation with cofactor", "signature", crafted, subject,
		with(forge(key, new(edwards25519.Point).Add(commitment, torsion(w.t)).Bytes(), a, r, message)))
}

func (w *writer) blind() {
	key := testKey(Exponent)
	message := subject.AppendMessage(nil, "phone", nil)
	good := Credential{"phone", nil, blindly(w.t, key, message)}
	with := func(evidence []byte) Credential { return Credential{"phone", nil, evidence} }
	w.add("blind", "accepted", blindIssuer, subject, good)
	w.others("signature", blindIssuer, good)
	w.add("a nullifier", "nullifier", blindIssuer, subject, Credential{"phone", nullifier, good.Evidence})
	w.add("short", "size", blindIssuer, subject, with(good.Evidence[1:]))
	w.add("long", "size", blindIssuer, subject, with(append([]byte{0}, good.Evidence...)))
	for e := int64(3); ; e += 2 {
		if other := testKey(e); other.D != nil {
			w.add("another exponent", "signature", blindIssuer, subject, with(blindly(w.t, other, message)))
			break
		}
	}
	w.add("zero", "signature", blindIssuer, subject, with(make([]byte, 256)))
	w.add("s = n", "range", blindIssuer, subject, with(key.N.Bytes()))
	limit := new(big.Int).Lsh(big.NewInt(1), 2048)
	for s := subject; ; s.Ticket[15]++ { // until s + n has 2048 bits
		evidence := blindly(w.t, key, s.AppendMessage(nil, "phone", nil))
		if sum := new(big.Int).Add(new(big.Int).SetBytes(evidence), key.N); sum.Cmp(limit) < 0 {
			w.add("another ticket's", "accepted", blindIssuer, s, with(evidence))
			w.add("s + n", "range", blindIssuer, s, with(sum.Bytes()))
			break
		}
	}
	short := subject
	for short.Ticket[15] = 0; ; short.Ticket[15]++ { // until s begins with a zero, which stays
		if evidence := blindly(w.t, key, short.AppendMessage(nil, "phone", nil)); evidence[0] == 0 {
			w.add("s begins with a zero byte", "accepted", blindIssuer, short, with(evidence))
			w.add("without its leading zero byte", "size", blindIssuer, short, with(evidence[1:]))
			break
		}
	}
	w.add("negated: n - s", "signature", blindIssuer, subject,
		with(new(big.Int).Sub(key.N, new(big.Int).SetBytes(good.Evidence)).FillBytes(make([]byte, 256))))
}

func (w *writer) work() {
	good := Credential{"task", nil, nonce(subject, "task", 12)}
	w.add("work", "accepted", worker, subject, good)
	w.add("more work than asked for", "accepted", worker, subject, Credential{"task", nil, nonce(subject, "task", 14)})
	w.add("a bit too little", "work", worker, subject, Credential{"task", nil, nonce(subject, "task", 11)})
	w.others("work", worker, good)
	later, before := subject, subject
	later.Round = bytes.Repeat([]byte{0xb7, 0x06}, 24)
	before.Round = nil
	w.add("another round", "work", worker, later, good)
	w.add("no round yet", "round", worker, before, good)
	w.add("7 bytes", "size", worker, subject, Credential{"task", nil, good.Evidence[:7]})
	w.add("9 bytes", "size", worker, subject, Credential{"task", nil, append(slices.Clone(good.Evidence), 0)})
	w.add("a nullifier", "nullifier", worker, subject, Credential{"task", nullifier, good.Evidence})

	n, e := hex.EncodeToString(nullifier), hex.EncodeToString(good.Evidence)
	for _, c := range [][2]string{
		{"no evidence", "task - "}, {"a dash for evidence", "task - -"}, {"half a byte", "task - " + e + "0"},
		{"upper case", "task - " + strings.ToUpper(e[:len(e)-2]) + "AB"}, {"no nullifier field", "task " + e},
		{"a nullifier of 31 bytes", "task " + n[2:] + " " + e}, {"a nullifier in upper case", "task " + strings.ToUpper(n) + " " + e},
		{"an empty nullifier", "task  " + e}, {"two spaces", "task -  " + e}, {"a space at the end", "task - " + e + " "},
		{"no name", " - " + e}, {"a name in upper case", "Task - " + e}, {"513 bytes", "task - " + strings.Repeat("00", 513)},
		{"the name of another method", "work - " + e}, {"nothing", ""},
	} {
		w.text(c[0], "syntax", worker, subject, c[1])
	}
}

func makeVectors(t testing.TB) *vectors {
	w := &writer{t: t}
	w.signed()
	w.blind()
	w.work()
	return &vectors{
		About: "Made by `go test ./fairness/credential -run TestVectors -update`, see vectors_test.go. " +
			"The RSA key is testRSA2048 of RFC 9500.",
		Messages: messageVectors(), Methods: methodVectors(t), Credentials: w.list,
	}
}

// TestVectors compares the package's output with the frozen vectors. Run it with -update only for a new version of
// the rules.
func TestVectors(t *testing.T) {
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetIndent("", " ")
	if err := enc.Encode(makeVectors(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s is not what -update writes", vectorsFile)
	}
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// judge gives the verdict on a credential as an auditor reaches it.
func judge(t testing.TB, method, text string, s Subject) error {
	m, err := ParseMethod(method)
	if err != nil {
		return err
	}
	v, err := NewVerifier(m)
	if err != nil {
		return err
	}
	fields := bytes.Split([]byte(text), []byte(" "))
	if len(fields) != 3 {
		return ErrSyntax
	}
	c, err := Parse(fields[0], fields[1], fields[2])
	if err != nil {
		return err
	}
	if again := string(c.AppendText(nil)); again != text {
		t.Errorf("credential %q is written as %q", text, again)
	}
	return v.Verify(s, c)
}

// TestVectorsRead reads the frozen file like a second implementation.
func TestVectorsRead(t *testing.T) {
	v, seen := readVectors(t), map[string]int{}
	for _, m := range v.Messages {
		got := hex.EncodeToString(m.Subject.subject(t).AppendMessage(nil, m.Method, mustHex(t, m.Nullifier)))
		if got != m.Message {
			t.Errorf("message %s, want %s", got, m.Message)
		}
	}
	for _, m := range v.Methods {
		parsed, err := ParseMethod(m.Method)
		if err == nil {
			_, err = NewVerifier(parsed)
		}
		if got := verdictOf(err); got != m.Verdict {
			t.Errorf("%s: method %s: %s (%v), want %s", m.About, m.Method, got, err, m.Verdict)
		}
		seen[m.Verdict]++
	}
	for _, c := range v.Credentials {
		err := judge(t, c.Method, c.Credential, c.Subject.subject(t))
		if got := verdictOf(err); got != c.Verdict {
			t.Errorf("%s: method %s: %s (%v), want %s", c.About, c.Method, got, err, c.Verdict)
		}
		seen[c.Verdict]++
	}
	for word := range verdicts {
		if seen[word] == 0 {
			t.Errorf("no vector has the verdict %q", word)
		}
	}
}
