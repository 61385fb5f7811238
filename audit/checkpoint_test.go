package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

const testOrigin = "example.com/r/launch"

// testSeed is the private key of RFC 8032, section 7.1, test 1: not a secret.
var testSeed = mustHex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")

func testKey(t testing.TB, origin string, seed []byte) (note.Signer, note.Verifier) {
	t.Helper()
	signer, vkey, err := NewSigner(origin, seed)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

func testCheckpoint(size int) Checkpoint {
	return Checkpoint{Origin: testOrigin, Size: uint64(size), Root: mth(leaves(size))}
}

func testSigned(t testing.TB, size int) []byte {
	t.Helper()
	signer, _ := testKey(t, testOrigin, testSeed)
	signed, err := SignCheckpoint(testCheckpoint(size), signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// mangle calls check with every variation of b in one place: with a byte removed, doubled or inserted, and
// with a byte changed in each bit and to each character that has a meaning in the formats.
func mangle(b []byte, check func(mangled []byte)) {
	for i := range b {
		check(append(bytes.Clone(b[:i]), b[i+1:]...))
		check(append(bytes.Clone(b[:i+1]), b[i:]...))
		for bit := range 8 {
			changed := bytes.Clone(b)
			changed[i] ^= 1 << bit
			check(changed)
		}
		next := bytes.Clone(b) // in base64 it may decode to the same bytes
		next[i]++
		check(next)
		for _, c := range []byte("\x00\n\r\t +-/=0A.x") {
			check(append(append(bytes.Clone(b[:i]), c), b[i:]...))
			if b[i] != c {
				changed := bytes.Clone(b)
				changed[i] = c
				check(changed)
			}
		}
	}
	for _, c := range []byte("\x00\n 0=") {
		check(append(bytes.Clone(b), c))
	}
}

func TestParseCheckpoint(t *testing.T) {
	const root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
	const empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for _, text := range []string{
		"example.com/behind-the-sofa\n20852163\n" + root + "\n", // the specification's example
		"o\n0\n" + empty + "\n",
		"o\n1\n" + root + "\n",
		"o\n1152921504606846976\n" + root + "\n",
		"ünïcode\u00b7\n9\n" + root + "\n",
	} {
		c, err := ParseCheckpoint(text)
		if err != nil || c.Marshal() != text {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	for name, text := range map[string]string{
		"empty":                  "",
		"no newline":             "o\n1\n" + root,
		"no root":                "o\n1\n",
		"no origin":              "\n1\n" + root + "\n",
		"origin with space":      "o o\n1\n" + root + "\n",
		"origin with wide space": "o\u2003o\n1\n" + root + "\n",
		"origin with plus":       "o+o\n1\n" + root + "\n",
		"origin with control":    "o\x01\n1\n" + root + "\n",
		"origin not UTF-8":       "o\xff\n1\n" + root + "\n",
		"empty size":             "o\n\n" + root + "\n",
		"leading zero":           "o\n01\n" + root + "\n",
		"negative":               "o\n-1\n" + root + "\n",
		"signed":                 "o\n+1\n" + root + "\n",
		"hexadecimal":            "o\n0x1\n" + root + "\n",
		"underscore":             "o\n1_0\n" + root + "\n",
		"above MaxSize":          "o\n1152921504606846977\n" + root + "\n",
		"above 64 bits":          "o\n18446744073709551617\n" + root + "\n",
		"short root":             "o\n1\nCsUYapGG\n",
		"unpadded root":          "o\n1\n" + strings.TrimSuffix(root, "=") + "\n",
		"stray bits in root":     "o\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n",
		"url-safe root":          "o\n1\n" + strings.ReplaceAll(root, "/", "_") + "\n",
		"carriage return":        "o\n1\n" + root + "\r\n",
		"extension line":         "o\n1\n" + root + "\nextension\n",
		"empty line":             "o\n1\n" + root + "\n\n",
		"empty tree, other root": "o\n0\n" + root + "\n",
	} {
		if c, err := ParseCheckpoint(text); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestOpenCheckpoint(t *testing.T) {
	signer, verifier := testKey(t, testOrigin, testSeed)
	witnessSigner, witness := testKey(t, "witness.example.com", bytes.Repeat([]byte{1}, 32))
	_, stranger := testKey(t, testOrigin, bytes.Repeat([]byte{2}, 32))
	_, renamed := testKey(t, "example.com/r/other", testSeed)
	want := testCheckpoint(12)
	signed, err := SignCheckpoint(want, signer, witnessSigner)
	if err != nil {
		t.Fatal(err)
	}

	c, n, err := OpenCheckpoint(signed, verifier)
	if err != nil || c != want || len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 1 {
		t.Errorf("with the log's key: %+v, %+v, %v", c, n, err)
	}
	c, n, err = OpenCheckpoint(signed, verifier, witness)
	if err != nil || c != want || len(n.Sigs) != 2 || len(n.UnverifiedSigs) != 0 {
		t.Errorf("with the witness: %+v, %+v, %v", c, n, err)
	}

	foreign, err := note.Sign(&note.Note{Text: "example.com/r/other\n1\n" + Hash{}.String() + "\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	extended, err := note.Sign(&note.Note{Text: want.Marshal() + "extension\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	byWitness, err := note.Sign(&note.Note{Text: want.Marshal()}, witnessSigner)
	if err != nil {
		t.Fatal(err)
	}
	strangerSigner, _ := testKey(t, testOrigin, bytes.Repeat([]byte{2}, 32))
	byStranger, err := note.Sign(&note.Note{Text: want.Marshal()}, strangerSigner)
	if err != nil {
		t.Fatal(err)
	}
	byNamesake, err := note.Sign(&note.Note{Text: want.Marshal()}, alias{Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	badWitness := bytes.Clone(signed)
	badWitness[len(badWitness)-10] ^= 1
	for _, c := range []struct {
		name    string
		signed  []byte
		log     note.Verifier
		witness note.Verifier
		want    error
	}{
		{"nothing", nil, verifier, witness, ErrSignature},
		{"another key of that name", signed, stranger, witness, ErrSignature},
		{"the key under another name", signed, renamed, witness, ErrSignature},
		{"checkpoint of another origin", foreign, verifier, witness, ErrSignature},
		{"the witness alone", byWitness, verifier, witness, ErrSignature},
		{"wrong signature of the witness", badWitness, verifier, witness, ErrSignature},
		{"extension line", extended, verifier, witness, ErrCheckpoint},
		{"a witness under the log's name", byStranger, verifier, stranger, ErrSignature},
		{"a witness with the log's key id", byNamesake, verifier, alias{Verifier: verifier}, ErrSignature},
	} {
		if got, n, err := OpenCheckpoint(c.signed, c.log, c.witness); !errors.Is(err, c.want) || n != nil || got != (Checkpoint{}) {
			t.Errorf("%s: %+v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// alias returns a key with the id of another: 32 bits are easy to collide.
type alias struct {
	note.Signer
	note.Verifier
}

func (a alias) Name() string { return "namesake.example.com" }

func (a alias) KeyHash() uint32 {
	if a.Signer != nil {
		return a.Signer.KeyHash()
	}
	return a.Verifier.KeyHash()
}

// TestOpenCheckpointMangled changes each byte of a signed checkpoint.
func TestOpenCheckpointMangled(t *testing.T) {
	_, verifier := testKey(t, testOrigin, testSeed)
	mangle(testSigned(t, 77), func(mangled []byte) {
		if c, _, err := OpenCheckpoint(mangled, verifier); err == nil {
			t.Errorf("opened %q as %+v", mangled, c)
		}
	})
}

func TestSignCheckpointRefusals(t *testing.T) {
	signer, _ := testKey(t, testOrigin, testSeed)
	other, _ := testKey(t, "example.com/r/other", testSeed)
	good := testCheckpoint(5)
	for _, c := range []struct {
		name    string
		c       Checkpoint
		signers []note.Signer
		want    error
	}{
		{"no signer", good, nil, ErrKey},
		{"signer of another log", good, []note.Signer{other}, ErrKey},
		{"log's signer not first", good, []note.Signer{other, signer}, ErrKey},
		{"size above MaxSize", Checkpoint{testOrigin, MaxSize + 1, good.Root}, []note.Signer{signer}, ErrCheckpoint},
		{"empty tree, other root", Checkpoint{testOrigin, 0, good.Root}, []note.Signer{signer}, ErrCheckpoint},
	} {
		if signed, err := SignCheckpoint(c.c, c.signers...); !errors.Is(err, c.want) || signed != nil {
			t.Errorf("%s: %q, %v, want %v", c.name, signed, err, c.want)
		}
	}
}

// TestNewSigner compares with keys that note itself creates.
func TestNewSigner(t *testing.T) {
	for range 20 {
		skey, want, err := note.GenerateKey(rand.Reader, testOrigin)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := base64.StdEncoding.DecodeString(skey[len("PRIVATE+KEY+"+testOrigin+"+01234567+"):])
		if err != nil {
			t.Fatal(err)
		}
		signer, vkey, err := NewSigner(testOrigin, secret[1:])
		if err != nil || vkey != want {
			t.Fatalf("vkey %q (%v), want %q", vkey, err, want)
		}
		verifier, err := note.NewVerifier(want)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := SignCheckpoint(testCheckpoint(3), signer)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenCheckpoint(signed, verifier); err != nil {
			t.Error(err)
		}
	}
	for _, origin := range []string{"", "a b", "a+b", "a\nb", "a\x00", "\xff"} {
		if _, _, err := NewSigner(origin, testSeed); !errors.Is(err, ErrKey) {
			t.Errorf("new signer %q: %v", origin, err)
		}
	}
	for _, n := range []int{0, 31, 33, ed25519.PrivateKeySize} {
		if _, _, err := NewSigner(testOrigin, make([]byte, n)); !errors.Is(err, ErrKey) {
			t.Errorf("seed of %d bytes: %v", n, err)
		}
	}
}

// TestSignedNoteExample opens the example of c2sp.org/signed-note.
func TestSignedNoteExample(t *testing.T) {
	const signed = "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
	verifier, err := note.NewVerifier("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open([]byte(signed), note.VerifierList(verifier)); err != nil {
		t.Error(err)
	}
	if _, _, err := OpenCheckpoint([]byte(signed), verifier); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("a note that is no checkpoint: %v", err)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(testCheckpoint(0).Marshal())
	f.Add(testCheckpoint(100).Marshal())
	f.Add("o\n1\n" + Hash{}.String() + "\nextension\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCheckpoint(text)
		if err == nil && c.Marshal() != text {
			t.Errorf("%q reads as %+v", text, c)
		}
		if err != nil && (!errors.Is(err, ErrCheckpoint) || c != Checkpoint{}) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	_, verifier := testKey(f, testOrigin, testSeed)
	good := testSigned(f, 9)
	f.Add(good)
	f.Add(append(bytes.Clone(good), good[bytes.LastIndex(good, []byte("—")):]...))
	f.Add([]byte("\n\n— a AAAAAAA=\n"))
	text, _, _ := bytes.Cut(good, []byte("\n\n"))
	f.Fuzz(func(t *testing.T, signed []byte) {
		_, _, err := OpenCheckpoint(signed, verifier)
		if err == nil && !bytes.HasPrefix(signed, text) {
			t.Errorf("opened %q", signed)
		}
		if err != nil && !errors.Is(err, ErrSignature) && !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%q: %v", signed, err)
		}
	})
}

// TestLines signs a checkpoint with extra lines besides the signature.
func TestLines(t *testing.T) {
	signer, vkey, err := NewSigner("o", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseKey(vkey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := SignCheckpoint(Checkpoint{Origin: "o", Size: 1, Root: Hash{1}}, signer)
	if err != nil {
		t.Fatal(err)
	}
	own := string(signed[bytes.LastIndex(signed, []byte("—")):])
	other := func(id string) string {
		return "— w " + base64.StdEncoding.EncodeToString([]byte(id+strings.Repeat("\x00", 66))) + "\n" // 70 bytes: two characters with unused bits
	}
	wrong := own[:30] + map[bool]string{true: "B", false: "A"}[own[30] == 'A'] + own[31:]
	for name, c := range map[string]struct {
		more string
		ok   bool
	}{
		"none":                     {"", true},
		"another's":                {other("1234"), true},
		"another's, twice":         {other("1234") + other("1234"), true},
		"own again":                {own, false},
		"own again, wrong":         {wrong, false},
		"another's, spare bits":    {strings.Replace(other("1234"), "A=", "B=", 1), false},
		"another's, without bytes": {"— w MTIzNA==\n", false},
		"another's, name with +":   {strings.Replace(other("1234"), " w ", " w+ ", 1), false},
	} {
		note := append(bytes.Clone(signed), c.more...)
		_, _, err := OpenCheckpoint(note, key)
		if c.ok != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		_, err = UnverifiedCheckpoint(note)
		if want := c.ok || strings.HasPrefix(name, "own"); want != (err == nil) {
			t.Errorf("%s, unverified: %v", name, err)
		}
	}
	for _, bad := range []string{
		"", "o", vkey + "=", strings.ToUpper(vkey), vkey[:len(vkey)-1] + "\n" + vkey[len(vkey)-1:], "\x01" + vkey, vkey + "\n",
	} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrKey) {
			t.Errorf("key %q: %v", bad, err)
		}
	}
}
