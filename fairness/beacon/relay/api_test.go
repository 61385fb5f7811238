package relay_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// quicknetInfo is the response of quicknet's relays, from
// https://docs.drand.love/blog/2023/10/16/quicknet-is-live/
const quicknetInfo = `{"public_key":"83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a","period":3,"genesis_time":1692803367,"hash":"52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971","groupHash":"f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e","schemeID":"bls-unchained-g1-rfc9380","metadata":{"beaconID":"quicknet"}}`

func TestInfoOfQuicknet(t *testing.T) {
	got, err := relay.ParseInfo([]byte(quicknetInfo))
	if err != nil || got != beacon.Quicknet() {
		t.Errorf("%+v, %v", got, err)
	}
	if got := string(relay.EncodeInfo(beacon.Quicknet())); got != quicknetInfo+"\n" {
		t.Errorf("writes %s", got)
	}
}

// TestParseInfoRefuses checks that chains with a wrong hash, key or scheme are rejected.
func TestParseInfoRefuses(t *testing.T) {
	for name, change := range map[string][2]string{
		"hash of another":    {`"hash":"52`, `"hash":"53`},
		"key of another":     {"83cf0f28", "a3cf0f28"},
		"genesis of another": {"1692803367", "1692803366"},
		"period of another":  {`"period":3`, `"period":30`},
		"group of another":   {"f477", "f478"},
		"id of another":      {`"quicknet"`, `"slownet"`},
		"older scheme":       {"bls-unchained-g1-rfc9380", "bls-unchained-on-g1"},
		"no scheme":          {`"schemeID"`, `"scheme"`},
		"short key":          {"83cf0f28", ""},
		"long key":           {"83cf0f28", "83cf0f2800"},
		"no group":           {`"groupHash"`, `"group"`},
		"broken period":      {`"period":3`, `"period":3.5`},
		"negative period":    {`"period":3`, `"period":-3`},
		"cut off":            {`}}`, `}`},
		"text after it":      {`}}`, `}} {}`},
	} {
		text := strings.Replace(quicknetInfo, change[0], change[1], 1)
		if text == quicknetInfo {
			t.Errorf("%s changes nothing", name)
		}
		if c, err := relay.ParseInfo([]byte(text)); !errors.Is(err, relay.ErrChain) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte(quicknetInfo))
	f.Add([]byte(strings.Replace(quicknetInfo, `"hash"`, `"x"`, 1)))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := relay.ParseInfo(data)
		if err != nil {
			return
		}
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
		if again, err := relay.ParseInfo(relay.EncodeInfo(c)); err != nil || again != c {
			t.Errorf("%+v is read again as %+v, %v", c, again, err)
		}
	})
}

func FuzzParseRound(f *testing.F) {
	f.Add([]byte(`{"round":42,"randomness":"fe290beca1","signature":"` + round42 + `"}`))
	f.Add([]byte(`{"round":0,"signature":"` + round42 + `"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, signature, err := relay.ParseRound(data)
		if err != nil {
			if n != 0 || signature != nil {
				t.Error("an error, and a round")
			}
			return
		}
		again, same, err := relay.ParseRound(relay.EncodeRound(n, signature))
		if err != nil || again != n || !bytes.Equal(same, signature) {
			t.Errorf("round %d, %x is read again as %d, %x, %v", n, signature, again, same, err)
		}
	})
}

func TestRoundJSON(t *testing.T) {
	n, signature, err := relay.ParseRound(relay.EncodeRound(math.MaxUint64, unhex(t, round42)))
	if err != nil || n != math.MaxUint64 || !bytes.Equal(signature, unhex(t, round42)) {
		t.Errorf("%d, %x, %v", n, signature, err)
	}
}
