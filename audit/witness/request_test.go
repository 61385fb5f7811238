package witness

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/audit"
)

// The example of the specification.
//
// https://c2sp.org/tlog-witness#add-checkpoint
func TestRequestExample(t *testing.T) {
	body, err := os.ReadFile("testdata/add-checkpoint.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRequest(body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Old != 20852014 || len(r.Proof) != 4 || r.Proof[3].String() != "/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=" {
		t.Errorf("read %+v", r)
	}
	c, err := parseCheckpoint("example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n")
	if err != nil || !bytes.HasPrefix(r.Checkpoint, []byte(c.Marshal())) {
		t.Errorf("read %v, %v", c, err)
	}
	if !bytes.Equal(r.Marshal(), body) {
		t.Errorf("wrote %q", r.Marshal())
	}
}

func TestParseRequest(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	for _, r := range []Request{
		{Checkpoint: l.signed(0)},
		l.request(0, 30),
		l.request(7, 30),
		{Old: 1<<64 - 1, Proof: make([]audit.Hash, MaxProof), Checkpoint: []byte{}},
	} {
		got, err := ParseRequest(r.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Error(diff)
		}
	}
}

const hash = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"

// malformed are bodies that are wrong whatever checkpoint follows them.
var malformed = map[string]string{
	"nothing":                 "",
	"no empty line":           "old 0\n" + hash,
	"empty line first":        "\nold 0\n\n",
	"no old size":             hash + "\n",
	"upper case":              "Old 0\n\n",
	"no space":                "old0\n\n",
	"two spaces":              "old  0\n\n",
	"no number":               "old \n\n",
	"leading zero":            "old 01\n\n",
	"zeroes":                  "old 00\n\n",
	"sign":                    "old +1\n\n",
	"negative":                "old -1\n\n",
	"underscore":              "old 1_0\n\n",
	"hexadecimal":             "old 0x1\n\n",
	"more than 64 bits":       "old 18446744073709551616\n\n",
	"space after the size":    "old 1 \n\n",
	"carriage return":         "old 1\r\n\r\n",
	"short hash":              "old 1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxqw==\n\n",
	"long hash":               "old 1\n" + strings.Repeat("A", 44) + "\n\n",
	"hash without padding":    "old 1\n" + strings.TrimRight(hash, "=\n") + "\n\n",
	"URL base64":              "old 1\n" + strings.ReplaceAll(hash, "/", "_") + "\n",
	"stray bits in base64":    "old 1\n" + strings.Replace(hash, "q2I=", "q2J=", 1) + "\n",
	"space after a hash":      "old 1\n" + strings.Replace(hash, "\n", " \n", 1) + "\n",
	"hash in hexadecimal":     "old 1\n" + strings.Repeat("ab", 32) + "\n\n",
	"more than 63 hashes":     "old 1\n" + strings.Repeat(hash, MaxProof+1) + "\n",
	"line break within a one": "old 1\n" + hash[:20] + "\n" + hash[20:] + "\n",
}

func TestParseRequestRefusals(t *testing.T) {
	for name, body := range malformed {
		if r, err := ParseRequest([]byte(body)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestParseCheckpointRefusals(t *testing.T) {
	const root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
	if _, err := parseCheckpoint("o\n1\n" + root + "\nmore\n"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"", "\n", "o\n1\n", "o\n1\n\n", "\n1\n" + root + "\n", "o\n01\n" + root + "\n", "o\n+1\n" + root + "\n", "o\n\n" + root + "\n",
		"o\n1152921504606846977\n" + root + "\n", "o\n18446744073709551616\n" + root + "\n", "o\n1\n" + root[1:] + "\n",
		"o\n1\n" + strings.Replace(root, "q2I=", "q2J=", 1) + "\n", "o\n1\n" + root, "o\n1\n" + root + "\n\n", "o\n1\n" + root + "\n\nmore\n",
	} {
		if c, err := parseCheckpoint(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	l := newLog(f, testOrigin, 1, 30, 30)
	f.Add(l.request(7, 30).Marshal())
	f.Add(l.request(0, 0).Marshal())
	for _, body := range malformed {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(r.Marshal(), body) || len(r.Proof) > MaxProof {
			t.Errorf("%q is read as %+v", body, r)
		}
	})
}

// Whatever clients send, the witness only cosigns the log's own history.
func FuzzAddCheckpoint(f *testing.F) {
	l := newLog(f, testOrigin, 1, 30, 30)
	h := newHouse(f, l)
	h.cosigned(f, l.request(0, 10))
	f.Add(l.request(10, 12).Marshal())
	f.Add(l.request(10, 10).Marshal())
	f.Add(newLog(f, testOrigin, 1, 30, 5).request(10, 12).Marshal())
	f.Add(newLog(f, testOrigin, 2, 30, 30).request(10, 12).Marshal())
	history := map[uint64]audit.Checkpoint{}
	for size := range 31 {
		history[uint64(size)] = l.checkpoint(size)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			return
		}
		before, err := h.latest(testOrigin)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.AddCheckpoint(t.Context(), r)
		after, stateErr := h.latest(testOrigin)
		if stateErr != nil {
			t.Fatal(stateErr)
		}
		if err != nil {
			if c != (audit.Cosignature{}) || !bytes.Equal(before.signed, after.signed) {
				t.Errorf("state changed from %q to %q, though %v", before.signed, after.signed, err)
			}
			return
		}
		if after.Checkpoint != history[after.Size] || after.Size < before.Size || after.cosignature != c {
			t.Errorf("cosigned %q", after.signed)
		}
	})
}
