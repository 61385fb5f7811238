package edge_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/conformance"
)

// forger makes random notes with a site's rules, most of them invalid.
type forger struct {
	writer
	own, other note.Signer
}

// mostly returns the valid value, or now and then another.
func (f forger) mostly(right string, others ...string) string {
	if f.IntN(6) > 0 {
		return right
	}
	return pick(f.writer, others...)
}

// note returns a random note.
func (f forger) note(t *testing.T) []byte {
	t.Helper()
	document := f.mostly(`{"version":1}`, "{\n\n\"version\": 1\n}", `{"version":1,"hosts":["a"]}`, `{"version":1,"version":1}`, `{"version":2}`, "", "{\"version\":1,\n\"rules\":[{\"name\":\"\u00e9\",\"action\":\"block\"}]}", `{"version":1,"hosts":["\u0000"]}`)
	version := f.mostly("7", "1", "9223372036854775807", "9223372036854775808", "0", "07", "-1", "", "1e3", "7 ", "99999999999999999999")
	text := f.mostly("proofline-rules/v1", "proofline-rules/v2", "Proofline-rules/v1", "") + "\n" +
		f.mostly("shop", "other", "", "shop ", "Shop") + "\n" + version + "\n" + document + f.mostly("\n", "\n\n", "\n \n")
	signers := [][]note.Signer{{f.own}, {f.own}, {f.own}, {f.other, f.own}, {f.own, f.other}, {f.other}}[f.IntN(6)]
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	if err != nil {
		t.Fatal(err)
	}
	for range max(0, f.IntN(6)-3) {
		signed = f.changed(signed)
	}
	return signed
}

// changed returns a note with one change.
func (f forger) changed(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	at := f.IntN(len(b))
	if f.IntN(2) == 0 { // near the end, among the signatures
		at = max(0, len(b)-1-f.IntN(100))
	}
	part := pick(f.writer, "", "", "A", "\n", "\n\n", " ", "+", "=", "\t", "\r", "\x00", "\x7f", "\xff", "\u2014 ", "\u2014 x AAAAAAA=\n", "\u2014 x AAA=\n", "\ufeff", "\u2028")
	end := min(len(b), at+f.IntN(3))
	return []byte(string(b[:at]) + part + string(b[end:]))
}

// TestNotes compares both implementations on random notes.
func TestNotes(t *testing.T) {
	t.Parallel()
	in, out := conformance.Start(t, ".", "node", "node_modules/.cache/notes/notes.js")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := forger{writer: writer{mathrand.New(mathrand.NewPCG(seed, 1))}}
	var key string
	f.own, key = newSigner(t, "queue.example.com/o/shop")
	f.other, _ = newSigner(t, "queue.example.com/o/other")
	var given []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(given) }))
	t.Cleanup(server.Close)
	taken := 0
	for range 1500 {
		given = f.note(t)
		if err := json.NewEncoder(in).Encode(map[string]any{"key": key, "note": given}); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		want := "null"
		c, err := connector.New(connector.Options{
			Source: &connector.Source{URL: server.URL + "/v1/sites/shop/rules", SiteKey: key}, Key: []byte(strings.Repeat("k", 32)), Log: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			want = fmt.Sprintf("%q", fmt.Sprint(c.Stats().RulesVersion))
			taken++
			c.Close()
		}
		if got := strings.TrimSpace(line); got != want {
			t.Fatalf("%q\nis %s here (%v), there %s", given, want, err, got)
		}
	}
	t.Logf("%d of 1500 were taken", taken)
	if taken < 150 {
		t.Error("the comparison says little")
	}
}

func newSigner(t *testing.T, name string) (s note.Signer, verifier string) {
	t.Helper()
	private, verifier, err := note.GenerateKey(rand.Reader, name)
	if err == nil {
		s, err = note.NewSigner(private)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, verifier
}
