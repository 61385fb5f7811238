package demo

import (
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
)

// TestFrontStarts takes the address from what the proxy prints, and says so
// when there is none.
func TestFrontStarts(t *testing.T) {
	t.Parallel()
	var f front
	var complaints strings.Builder
	if err := f.start(t.Context(), "sh", []string{"-c", "echo hello; echo listening on http://127.0.0.1:7; exec sleep 60"}, &complaints); err != nil || f.url != "http://127.0.0.1:7" {
		t.Errorf("%q, %v", f.url, err)
	}
	if err := f.close(); err == nil || !strings.Contains(err.Error(), "signal: terminated") {
		t.Errorf("stopped: %v", err)
	}
	var broken front
	err := broken.start(t.Context(), "sh", []string{"-c", "echo no key >&2; exit 3"}, &complaints)
	if err == nil || !strings.Contains(err.Error(), "does not listen: exit status 3") || complaints.String() != "no key\n" {
		t.Errorf("%v, %q", err, complaints.String())
	}
	if err := new(front).start(t.Context(), "/nowhere/proofline", nil, &complaints); err == nil {
		t.Error("a program that is not there starts")
	}
	if err := new(front).close(); err != nil {
		t.Errorf("one that never started: %v", err)
	}
}

// TestFrontDies tells that the proxy is gone, whoever waits.
func TestFrontDies(t *testing.T) {
	t.Parallel()
	var f front
	if err := f.start(t.Context(), "sh", []string{"-c", "echo listening on http://127.0.0.1:7; exit 2"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	var told error
	f.watch(t.Context(), func(err error) { told = err })
	if told == nil || !strings.Contains(told.Error(), "the proxy died: exit status 2") {
		t.Errorf("%v", told)
	}
	if err := f.close(); err == nil {
		t.Error("it is stopped in order")
	}
}

func TestLed(t *testing.T) {
	t.Parallel()
	d := &demo{room: api.Room{URL: "http://queue.example/r/demo"}}
	for name, tt := range map[string]struct {
		answer answer
		want   bool
	}{
		"a page":         {answer{status: http.StatusFound, to: "http://queue.example/r/demo?to=x"}, true},
		"a form":         {answer{status: http.StatusSeeOther, to: "http://queue.example/r/demo"}, true},
		"a script":       {answer{status: http.StatusForbidden, queue: "http://queue.example/r/demo"}, true},
		"through":        {answer{status: http.StatusOK}, false},
		"entered":        {answer{status: http.StatusSeeOther, to: "/tickets"}, false},
		"another room":   {answer{status: http.StatusFound, to: "http://queue.example/r/demo2?to=x"}, false},
		"refused":        {answer{status: http.StatusForbidden}, false},
		"shown, and led": {answer{status: http.StatusOK, to: "http://queue.example/r/demo"}, false},
	} {
		if got := d.led(tt.answer); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestForged signs the same claims by another key.
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
		t.Errorf("%s says something else than %s", text, pass)
	}
	key := func(*jwt.Token) (any, error) { return public, nil }
	if _, err := jwt.Parse(pass, key); err != nil {
		t.Error(err)
	}
	if _, err := jwt.Parse(text, key); err == nil {
		t.Error("it is good")
	}
	if _, err := forged("pass"); err == nil {
		t.Error("no pass is forged")
	}
}
