package vrf

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// Vector is an example from RFC 9381, appendix B.1 or B.2.
type Vector struct {
	Suite                               string
	Example                             int
	SK, PK, Alpha, H, K, U, V, Pi, Beta HexBytes
}

// HexBytes is written as hexadecimal text.
type HexBytes []byte

func (h *HexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// Vectors returns the RFC's three examples of a suite.
func Vectors(tb testing.TB, suite string) []Vector {
	tb.Helper()
	b, err := os.ReadFile("testdata/rfc9381-p256.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Vectors []Vector }
	if err := json.Unmarshal(b, &file); err != nil {
		tb.Fatal(err)
	}
	var found []Vector
	for _, v := range file.Vectors {
		if v.Suite == suite {
			found = append(found, v)
		}
	}
	if len(found) != 3 {
		tb.Fatalf("%d examples of %s, want 3", len(found), suite)
	}
	return found
}
