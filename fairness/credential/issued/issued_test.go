package issued

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(n byte) ed25519.PublicKey { return testKey(n).Public().(ed25519.PublicKey) }

func derby() *Count {
	room := sha256.Sum256([]byte("derby"))
	return &Count{By: "club.example.org/a", Millis: 1_800_000_000_000, Offers: []Offer{
		{Name: "mail", Method: "club", Room: room, Accounts: 7, Limit: 10},
		{Name: "derby.club", Method: "club", Room: room, Accounts: 2},
		{Name: "press", Method: "press", Room: room},
	}}
}

func TestCount(t *testing.T) {
	signed, err := derby().Sign(testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(signed, public(2), public(1))
	if err != nil || !reflect.DeepEqual(c, derby()) {
		t.Fatalf("%+v, %v", c, err)
	}
	room := derby().Offers[0].Room
	for method, want := range map[string]uint64{"club": 9, "press": 0} {
		if n, ok := c.Of(room, method); n != want || !ok {
			t.Errorf("%s: %d, %t", method, n, ok)
		}
	}
	if _, ok := c.Of(room, "fans"); ok {
		t.Error("a method that is not offered is counted")
	}
	if _, ok := c.Of(sha256.Sum256(nil), "club"); ok {
		t.Error("another room is counted")
	}
}

func TestOpenRefuses(t *testing.T) {
	signed, err := derby().Sign(testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := (&Count{By: "club.example.org", Offers: []Offer{{Name: "a b", Method: "club"}}}).Sign(testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"a name with a space":     {other, ErrForm},
		"another number":          {bytes.Replace(signed, []byte(" 7 10"), []byte(" 8 10"), 1), ErrKey},
		"no signature":            {signed[:bytes.Index(signed, []byte("\n\n"))+1], ErrForm},
		"nothing":                 {nil, ErrForm},
		"too much":                {append(signed, strings.Repeat("x", MaxSize)...), ErrForm},
		"under another name":      {bytes.Replace(signed, []byte("club.example.org/a"), []byte("club.example.com/a"), 1), ErrKey},
		"a name that cannot be":   {bytes.Replace(signed, []byte("club.example.org/a"), []byte("club+example.org/a"), 1), ErrForm},
		"no line of an offer":     {bytes.Replace(signed, []byte("mail club"), []byte("mail"), 1), ErrKey},
		"something after the end": {append(bytes.Clone(signed), "x"...), ErrForm},
	} {
		if _, err := Open(c.text, public(1)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := Open(signed, public(2)); !errors.Is(err, ErrKey) {
		t.Errorf("another key: %v", err)
	}
	if _, err := Open(signed); !errors.Is(err, ErrKey) {
		t.Errorf("no key: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(derby().text())
	f.Add("proofline/issued/v1\ntime 01\n")
	f.Fuzz(func(t *testing.T, text string) {
		var c, again Count
		if !c.parse(text) || c.text() != text {
			return
		}
		if !again.parse(c.text()) || !reflect.DeepEqual(c, again) {
			t.Errorf("%q", text)
		}
	})
}

func FuzzOpen(f *testing.F) {
	signed, err := derby().Sign(testKey(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Open(text, public(1))
		if err == nil && !reflect.DeepEqual(c, derby()) {
			t.Errorf("%q has a signature", text)
		}
	})
}
