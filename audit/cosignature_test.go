package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

const (
	testWitness = "witness.example.org/w1"
	testTime    = 1679315147 // of the example in tlog-cosignature
)

func testCosigner(t testing.TB, name string, fill byte) (Witness, ed25519.PrivateKey) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
	w, err := NewWitness(name, private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return w, private
}

// TestCosignatureVectors opens checkpoints of independent logs and witnesses.
func TestCosignatureVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Checkpoint string
			Log        string
			Witnesses  map[string]int64
		}
	}
	b, err := os.ReadFile("testdata/cosignatures.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, v := range file.Vectors {
		log, err := note.NewVerifier(v.Log)
		if err != nil {
			t.Fatal(err)
		}
		for vkey, want := range v.Witnesses {
			w, err := ParseWitness(vkey)
			if err != nil {
				t.Fatal(err)
			}
			_, n, err := OpenCheckpoint([]byte(v.Checkpoint), log, w)
			if err != nil {
				t.Fatalf("%s: %v", vkey, err)
			}
			c, ok := w.Cosignature(n)
			if !ok || c.Time() != want {
				t.Errorf("%s: time %d, %v, want %d", vkey, c.Time(), ok, want)
			}
			if err := w.VerifyCosignature(n.Text, c); err != nil {
				t.Error(err)
			}
			if !strings.Contains(v.Checkpoint, "\n"+c.Line(w.Name())) {
				t.Errorf("%s: wrote the line %q", vkey, c.Line(w.Name()))
			}
			seen++
		}
	}
	if seen < 3 {
		t.Errorf("%d cosignatures", seen)
	}
}

// TestCosignatureLayout checks the layout of the specification's example, whose key is unknown.
//
// https://c2sp.org/tlog-cosignature
func TestCosignatureLayout(t *testing.T) {
	const example = "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA=="
	b, err := base64.StdEncoding.DecodeString(example)
	if err != nil || len(b) != len(Cosignature{}) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	c := Cosignature(b)
	if c.Time() != testTime {
		t.Errorf("time %d, want %d", c.Time(), testTime)
	}
	if got, want := c.Line("witness.example.com/w1"), "— witness.example.com/w1 "+example+"\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestCosign(t *testing.T) {
	w, private := testCosigner(t, testWitness, 1)
	other, otherPrivate := testCosigner(t, "witness.example.net", 2)
	_, log := testKey(t, testOrigin, testSeed)
	signed := testSigned(t, 13)
	text := testCheckpoint(13).Marshal()
	c := w.Cosign(private, text, testTime)
	signed = append(signed, c.Line(w.Name())...)
	signed = append(signed, other.Cosign(otherPrivate, text, testTime+1).Line(other.Name())...)

	head, n, err := OpenCheckpoint(signed, log, w)
	if err != nil || head != testCheckpoint(13) {
		t.Fatalf("opened %v, %v", head, err)
	}
	if got, ok := w.Cosignature(n); !ok || got != c || got.Time() != testTime {
		t.Errorf("found %x, %v", got, ok)
	}
	if _, ok := other.Cosignature(n); ok {
		t.Error("found a cosignature that was not verified")
	}
	if _, n, err = OpenCheckpoint(signed, log, w, other); err != nil || len(n.Sigs) != 3 {
		t.Fatalf("%v", err)
	}
	if got, ok := other.Cosignature(n); !ok || got.Time() != testTime+1 {
		t.Errorf("found %x, %v", got, ok)
	}
	message := "cosignature/v1\ntime 1679315147\n" + text // signed text, as in the specification
	if !ed25519.Verify(w.Key[:], []byte(message), c[12:]) {
		t.Error("signed something else")
	}
}

// TestCosignatureAttacks changes a cosignature that would otherwise verify.
func TestCosignatureAttacks(t *testing.T) {
	w, private := testCosigner(t, testWitness, 1)
	namesake, namesakePrivate := testCosigner(t, testWitness, 2)
	renamed, _ := testCosigner(t, "witness.example.org/w2", 1)
	text := testCheckpoint(13).Marshal()
	c := w.Cosign(private, text, testTime)
	if err := w.VerifyCosignature(text, c); err != nil {
		t.Fatal(err)
	}
	later := c
	later[11]++
	note01 := c // a plain note signature by the same key, as a log makes
	copy(note01[12:], ed25519.Sign(private, []byte(text)))
	asNamesake := namesake.Cosign(namesakePrivate, text, testTime)
	copy(asNamesake[:4], c[:4])
	for name, attack := range map[string]struct {
		w    Witness
		text string
		c    Cosignature
	}{
		"other checkpoint":                   {w, testCheckpoint(12).Marshal(), c},
		"other root":                         {w, strings.Replace(text, "w", "x", 1), c},
		"extension line":                     {w, text + "more\n", c},
		"line missing":                       {w, strings.TrimSuffix(text, "\n"), c},
		"other time":                         {w, text, later},
		"other key of the same name":         {namesake, text, c},
		"other key with the id of the first": {w, text, asNamesake},
		"same key of another name":           {renamed, text, c},
		"log's signature as a cosignature":   {w, text, note01},
		"time zero":                          {w, text, w.Cosign(private, text, 0)},
		"time negative":                      {w, text, w.Cosign(private, text, -1)},
		"time beyond 2^63":                   {w, text, w.Cosign(private, text, math.MinInt64)},
		"no signature":                       {w, text, Cosignature{}},
		"no witness":                         {Witness{}, text, c},
	} {
		if err := attack.w.VerifyCosignature(attack.text, attack.c); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, sig := range map[string][]byte{
		"trailing byte": append(c[4:], 0),
		"byte missing":  c[4 : len(c)-1],
		"with key id":   c[:],
		"no time":       c[12:],
		"empty":         nil,
	} {
		if w.Verify([]byte(text), sig) {
			t.Errorf("%s: verified", name)
		}
	}
	if !w.Verify([]byte(text), c[4:]) {
		t.Error("not verified without an attack")
	}
}

func TestCosignatureMangled(t *testing.T) {
	w, private := testCosigner(t, testWitness, 1)
	_, log := testKey(t, testOrigin, testSeed)
	text := testCheckpoint(13).Marshal()
	c := w.Cosign(private, text, testTime)
	signed := string(testSigned(t, 13))
	mangle([]byte(c.Line(w.Name())), func(line []byte) {
		_, n, err := OpenCheckpoint([]byte(signed+string(line)), log, w)
		if err != nil {
			return
		}
		if got, ok := w.Cosignature(n); ok && got != c {
			t.Errorf("%q: %x", line, got)
		}
	})
}

// TestCosignatureInFormat checks the example in FORMAT.md, with the key of RFC 8032, section 7.1,
// test 2.
func TestCosignatureInFormat(t *testing.T) {
	private := ed25519.NewKeyFromSeed(mustHex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
	w, err := NewWitness("witness.example.org", private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	c := w.Cosign(private, testCheckpoint(13).Marshal(), testTime)
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{w.String() + "\n", c.Line(w.Name())} {
		if !strings.Contains(string(doc), "\n    "+line) {
			t.Errorf("FORMAT.md lacks %q", line)
		}
	}
}

func TestParseWitness(t *testing.T) {
	w, private := testCosigner(t, testWitness, 1)
	vkey := w.String()
	if got, err := ParseWitness(vkey); err != nil || got != w {
		t.Errorf("%q: %v, %v", vkey, got, err)
	}
	mangle([]byte(vkey), func(b []byte) {
		if got, err := ParseWitness(string(b)); err == nil || !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v, %v", b, got, err)
		}
	})
	asLog, err := note.NewEd25519VerifierKey(testWitness, private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	typed := func(typ byte) string {
		return base64.StdEncoding.EncodeToString(append([]byte{typ}, w.Key[:]...))
	}
	head := vkey[:len(testWitness)+len("+01234567+")]
	for name, vkey := range map[string]string{
		"empty":                        "",
		"key of a log":                 asLog,
		"key of a log with this id":    head + typed(1),
		"ML-DSA-44":                    head + typed(6),
		"no name":                      vkey[len(testWitness):],
		"upper case":                   strings.ToUpper(head) + typed(4),
		"no key":                       head,
		"short key":                    head + base64.StdEncoding.EncodeToString(append([]byte{4}, w.Key[1:]...)),
		"long key":                     head + base64.StdEncoding.EncodeToString(append([]byte{4, 0}, w.Key[:]...)),
		"space in the name":            strings.Replace(vkey, ".", " ", 1),
		"no padding, which 33 has not": vkey + "=",
	} {
		if _, err := ParseWitness(vkey); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %q: %v", name, vkey, err)
		}
	}
	for _, name := range []string{"", "a b", "a+b", "a\n", "\xff"} {
		if _, err := NewWitness(name, w.Key[:]); !errors.Is(err, ErrKey) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := NewWitness(testWitness, w.Key[1:]); !errors.Is(err, ErrKey) {
		t.Errorf("short key: %v", err)
	}
}

func FuzzParseWitness(f *testing.F) {
	w, _ := testCosigner(f, testWitness, 1)
	f.Add(w.String())
	f.Add("remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2")
	f.Fuzz(func(t *testing.T, vkey string) {
		w, err := ParseWitness(vkey)
		if err == nil && w.String() != vkey {
			t.Errorf("%q is written as %q", vkey, w)
		}
	})
}

// FuzzCosignature checks that only cosignatures made by the witness verify, under any text.
func FuzzCosignature(f *testing.F) {
	w, private := testCosigner(f, testWitness, 1)
	text := testCheckpoint(13).Marshal()
	c := w.Cosign(private, text, testTime)
	f.Add(text, c[4:])
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, other string, sig []byte) {
		if w.Verify([]byte(other), sig) && (other != text || !bytes.Equal(sig, c[4:])) {
			t.Errorf("verified %q with %x", other, sig)
		}
	})
}
