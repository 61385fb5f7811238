package demo

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/internal/wire"
)

// TestFrontStarts: start reads the address from the proxy's output, and fails when
// the proxy ends without one.
func TestFrontStarts(t *testing.T) {
	t.Parallel()
	var f front
	var stderr strings.Builder
	script := []string{"-c", "echo hello; echo listening on http://127.0.0.1:7; exec sleep 60"}
	if err := f.start(t.Context(), "sh", script, &stderr); err != nil || f.url != "http://127.0.0.1:7" {
		t.Errorf("%q, %v", f.url, err)
	}
	if err := f.close(); err == nil || !strings.Contains(err.Error(), "signal: terminated") {
		t.Errorf("stopped: %v", err)
	}
	var broken front
	err := broken.start(t.Context(), "sh", []string{"-c", "echo no key >&2; exit 3"}, &stderr)
	if err == nil || !strings.Contains(err.Error(), "before it listened: exit status 3") ||
		stderr.String() != "no key\n" {
		t.Errorf("%v, %q", err, stderr.String())
	}
	if err := new(front).start(t.Context(), "/nowhere/proofline", nil, &stderr); err == nil {
		t.Error("started a program that does not exist")
	}
	if err := new(front).close(); err != nil {
		t.Errorf("close of a proxy that never started: %v", err)
	}
}

// TestFrontEnds: both watch and close return the error of a proxy that ended by
// itself.
func TestFrontEnds(t *testing.T) {
	t.Parallel()
	var f front
	script := []string{"-c", "echo listening on http://127.0.0.1:7; exit 2"}
	if err := f.start(t.Context(), "sh", script, t.Output()); err != nil {
		t.Fatal(err)
	}
	var reported error
	f.watch(t.Context(), func(err error) { reported = err })
	if reported == nil || !strings.Contains(reported.Error(), "the proxy ended: exit status 2") {
		t.Errorf("%v", reported)
	}
	if err := f.close(); err == nil {
		t.Error("close returns no error after the proxy failed")
	}
}

func TestIsQueued(t *testing.T) {
	t.Parallel()
	f := &front{room: &demoRoom{Room: wire.Room{URL: "http://queue.example/r/demo"}}}
	for name, tt := range map[string]struct {
		answer answer
		want   bool
	}{
		"a page":         {answer{status: http.StatusFound, to: "http://queue.example/r/demo?to=x"}, true},
		"a form":         {answer{status: http.StatusSeeOther, to: "http://queue.example/r/demo"}, true},
		"a script":       {answer{status: http.StatusForbidden, queue: "http://queue.example/r/demo"}, true},
		"admitted":       {answer{status: http.StatusOK}, false},
		"session begins": {answer{status: http.StatusSeeOther, to: "/tickets"}, false},
		"another room":   {answer{status: http.StatusFound, to: "http://queue.example/r/demo2?to=x"}, false},
		"refused":        {answer{status: http.StatusForbidden}, false},
		"shown":          {answer{status: http.StatusOK, to: "http://queue.example/r/demo"}, false},
	} {
		if got := f.isQueued(tt.answer); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestForged: a forged pass has the same claims, signed with another key.
func TestForged(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	pass, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "one"}).SignedString(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := forged(pass)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Split(text, ".")[1] != strings.Split(pass, ".")[1] {
		t.Errorf("%s has other claims than %s", text, pass)
	}
	key := func(*jwt.Token) (any, error) { return public, nil }
	if _, err := jwt.Parse(pass, key); err != nil {
		t.Error(err)
	}
	if _, err := jwt.Parse(text, key); err == nil {
		t.Error("the forged pass verifies")
	}
	if _, err := forged("pass"); err == nil {
		t.Error("forged a text that is not a pass")
	}
}
