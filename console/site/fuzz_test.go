package site

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/mod/sumdb/note"

	"github.com/google/uuid"
	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/connector/rules"
)

// FuzzDocument checks that the stored form of a document has the meaning of the original, and that
// its note can be verified and parsed.
func FuzzDocument(f *testing.F) {
	f.Add("{\"version\": 1}")
	f.Add("\r\n{\t\"version\": 1,\r\"hosts\": [\"a.example.com\"]\n\n}\n \n")
	f.Add("{\"version\": 1, \"rules\": [{\"name\": \"a\tb\", \"action\": \"block\"}]}")
	f.Add("{\"version\": 1, \"rules\": [{\"name\": \"a\\n\\n\u2014 b c\", \"action\": \"block\"}]}")
	f.Add("{\"version\": 1, \"rules\": [{\"name\": \"\x7f\u2028\", \"action\": \"block\"}]}")
	signer, public, err := audit.NewSigner("queue.example.com/o/main", make([]byte, ed25519.SeedSize))
	if err != nil {
		f.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		f.Fatal(err)
	}
	org := uuid.UUID{}
	sites := &Sites{keys: map[uuid.UUID]key{org: {signer, public}}}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parse([]byte(text))
		if err != nil {
			return
		}
		written, err := rules.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q is stored, but connectors refuse it: %v", text, err)
		}
		kept, err := rules.Parse([]byte(d.text))
		if diff := cmp.Diff(written, kept, cmpopts.IgnoreUnexported(rules.Site{})); err != nil || diff != "" {
			t.Fatalf("%q is stored as %q, %v\n%s", text, d.text, err, diff)
		}
		if again := normal([]byte(d.text)); again != d.text {
			t.Errorf("%q is stored as %q, and that as %q", text, d.text, again)
		}
		signed, err := sites.sign(t.Context(), Site{Org: org, Name: "shop", Version: 7, Rules: []byte(d.text)})
		if err != nil {
			t.Fatal(err)
		}
		n, err := note.Open(signed.Note, note.VerifierList(verifier))
		if err != nil || n.Text != "proofline-rules/v1\nshop\n7\n"+d.text || !strings.HasSuffix(d.text, "}\n") || len(signed.Note) > 1_000_000 {
			t.Errorf("%q is signed as %q, %v", text, signed.Note, err)
		}
	})
}

// BenchmarkCheck checks the maximum number of URLs against the maximum number of rules.
func BenchmarkCheck(b *testing.B) {
	var list []string
	for range 999 {
		list = append(list, `{"name": "n`+uuid.NewString()+`", "when": {"path": {"glob": "*/a*b*c*d*e*/f*"}}, "action": "queue sale"}`)
	}
	document := `{"version": 1, "rooms": {"sale": {"url": "https://queue.example.com/r/sale"}}, "rules": [` + strings.Join(list, ",") + `,{"name": "all", "action": "queue sale"}]}`
	urls := make([]string, maxMatching/1000)
	for i := range urls {
		urls[i] = "https://shop.example.com/a/..;/b//" + strings.Repeat("abcde/", 320) + "%5cx"
	}
	for b.Loop() {
		if _, err := Check([]byte(document), urls, time.Unix(0, 0)); err != nil {
			b.Fatal(err)
		}
	}
}
