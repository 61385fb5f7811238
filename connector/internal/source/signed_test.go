package source

import (
	"strings"
	"testing"

	"github.com/proofline/proofline/connector/internal/sourcetest"
)

// TestSiteOf tests which URLs name a site.
func TestSiteOf(t *testing.T) {
	t.Parallel()
	if name, ok := siteOf("https://queue.example.com/v1/sites/my-shop/rules"); !ok || name != "my-shop" {
		t.Errorf("site %q", name)
	}
	for _, address := range []string{"https://a/v1/sites/A/rules", "https://a/v1/sites/a/rules/",
		"https://a/x/v1/sites/a/rules", "https://a/v1/sites/a%2Fb/rules", "https://a/v1/sites//rules", ":",
		"https://a/v1/sites/a/rules#x"} {
		if name, ok := siteOf(address); ok {
			t.Errorf("%s is of site %q", address, name)
		}
	}
}

// TestEveryByte tests that signed rules are refused with any changed byte.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	s := sourcetest.NewSigner(t)
	text := s.Rules("shop", 7, "one")
	for i := range len(text) {
		for _, b := range []byte{text[i] ^ 1, text[i] ^ 0x20, '\n', '7'} {
			own, err := newVerifier(s.Key, "https://queue.example.com/v1/sites/shop/rules")
			if err != nil {
				t.Fatal(err)
			}
			changed := []byte(text)
			if changed[i] = b; b == text[i] {
				continue
			}
			if got, version, err := own.open(changed); err == nil &&
				(i < strings.LastIndex(text, " ") || got != sourcetest.Blocking("one")+"\n" || version != 7) {
				t.Fatalf("byte %d may be %q: %q, %d", i, b, got, version) // of the signature's text the last bits do not count
			}
		}
	}
}

// FuzzSigned tests that only signed rules are opened.
func FuzzSigned(f *testing.F) {
	s := sourcetest.NewSigner(f)
	good := s.Rules("shop", 7, "one")
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, "\n7\n", "\n8\n", 1)))
	f.Add([]byte(good + good))
	f.Add([]byte("proofline-rules/v1\nshop\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		own, err := newVerifier(s.Key, "https://queue.example.com/v1/sites/shop/rules")
		if err != nil {
			t.Fatal(err)
		}
		document, version, err := own.open(text)
		if err == nil && (version != 7 || document != sourcetest.Blocking("one")+"\n") {
			t.Errorf("%q is opened as %d, %q", text, version, document)
		}
	})
}
