package report

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// TestSign tests the vectors that the room and the edge share.
func TestSign(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/return-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Key, Room, To, Sig string }
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d vectors, %v", len(list), err)
	}
	for _, v := range list {
		key, ok := parseReturnKey(v.Key)
		if got := key.Sign(v.Room, v.To); !ok || got != v.Sig {
			t.Errorf("%s: %s %t, want %s", v.Name, got, ok, v.Sig)
		}
	}
}

// FuzzParseReturnKey tests that a key has one spelling.
func FuzzParseReturnKey(f *testing.F) {
	good := base64.RawURLEncoding.EncodeToString(testKey)
	for _, seed := range []string{"", good, good + "=", good[:42], good + "AAAA", good[:20] + "\n" + good[20:],
		good[:42] + "~", good[:42] + "9", strings.Repeat("+", 43)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, ok := parseReturnKey(text)
		if ok != (len(text) == 43 && base64.RawURLEncoding.EncodeToString(key[:]) == text) {
			t.Errorf("%q: %t, %x", text, ok, key)
		}
	})
}
