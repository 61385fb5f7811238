package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness"
)

// ownBench is a server with an issuer of its own.
type ownBench struct {
	*testing.T
	dir string
	*process
}

// newOwn starts a server with an issuer, in a directory of its own.
func newOwn(t *testing.T, env []string, args ...string) *ownBench {
	t.Helper()
	b := &ownBench{T: t, dir: tempDir(t)}
	b.process = startServer(t, env, append([]string{"--data", b.dir, "--addr", "127.0.0.1:0"}, args...)...)
	return b
}

// restart starts the server again at its address, with other settings.
func (b *ownBench) restart(args ...string) {
	b.Helper()
	addr := strings.TrimPrefix(b.url, "http://")
	b.stop()
	b.process = startServer(b.T, nil, append([]string{"--data", b.dir, "--addr", addr}, args...)...)
}

// manage sends a request to the management API; an empty body is none.
func (b *ownBench) manage(method, path, body string) error {
	b.Helper()
	var text []byte
	if body != "" {
		text = []byte(body)
	}
	_, err := manager(b.T, b.process, b.dir).Call(b.Context(), method, path, text, &struct{}{})
	return err
}

// create creates a room.
func (b *ownBench) create(room string) error {
	b.Helper()
	return b.manage(http.MethodPost, "/v1/rooms", room)
}

// audited checks what an audit of room sale says.
func (b *ownBench) audited(want ...string) {
	b.Helper()
	stdout, stderr, _ := command(b.T, "", "proofline-verify", "audit", b.url+"/r/sale", "--no-keep")
	text := strings.Join(strings.Fields(stdout), " ")
	for _, part := range want {
		if !strings.Contains(text, part) {
			b.Errorf("the audit does not say %q: %s %s", part, stdout, stderr)
		}
	}
}

// fieldsOf returns the hidden fields of a page, with which its form goes back to the room.
func fieldsOf(page string) url.Values {
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	return form
}

// send sends a form as the page at an origin does.
func (b *ownBench) send(to, origin string, form url.Values) (int, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (b *ownBench) ticket(n int) fairness.Ticket {
	return fairness.NewTicket(strings.TrimPrefix(b.url, "http://")+"/r/sale", sha256.Sum256(fmt.Append(nil, n)))
}

// hasNot checks that no file of the issuer and no line of the log has a text.
func (b *ownBench) hasNot(secret string) {
	b.Helper()
	if strings.Contains(b.said(), secret) {
		b.Error("the log has a code or a ticket")
	}
	err := filepath.WalkDir(filepath.Join(b.dir, server.IssuerDir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), secret) {
			b.Errorf("%s has a code or a ticket", path)
		}
		return err
	})
	if err != nil {
		b.Error(err)
	}
}
