// Package token keeps the token for the Proofline server. The token may come from a file, which may
// change.
package token

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"
)

// ErrToken is returned when a token's file holds no token, and when the rules' server
// refuses the token.
var ErrToken = errors.New("the server token cannot be used")

// warnBefore is how long before the token's expiry warnings start, and
// logInterval the time between them.
const (
	warnBefore  = 14 * 24 * time.Hour
	logInterval = 24 * time.Hour
)

// Token is the token for the server, with its expiry. It is safe for concurrent use.
type Token struct {
	file string // read before each use; empty: the token does not change
	log  *slog.Logger

	mu        sync.Mutex
	text      string
	ends      time.Time // zero: never, or unknown
	warned    time.Time // last warning about the expiry
	lastError string    // last logged error from reading the file
}

// New returns a token. With a file the token is read from it before each use.
func New(text, file string, log *slog.Logger) *Token { return &Token{text: text, file: file, log: log} }

// Read reads a token from a file. Error: [ErrToken].
func Read(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the owner names the file
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: %s holds no token", ErrToken, file)
	}
	return string(text), nil
}

// Current returns the token; if its file cannot be read, the previous one.
func (t *Token) Current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" {
		return t.text
	}
	text, err := Read(t.file)
	if err == nil {
		t.lastError = ""
		if text != t.text {
			t.text, t.ends, t.warned = text, time.Time{}, time.Time{}
			t.log.Info("using a new server token", "file", t.file)
		}
		return t.text
	}
	if what := err.Error(); what != t.lastError {
		t.lastError = what
		t.log.Error("cannot read the token file: using the previous token", "err", err)
	}
	return t.text
}

// SetEnd stores the expiry that the server reported for a token; 0: never.
func (t *Token) SetEnd(shown string, ms int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if shown != t.text {
		return
	}
	t.ends = time.Time{}
	if ms > 0 {
		t.ends = time.UnixMilli(ms)
	}
}

// Warn logs once a day that the token expires soon, or has expired.
func (t *Token) Warn(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.ends.Sub(now)
	if t.ends.IsZero() || left > warnBefore || !t.warned.IsZero() && now.Sub(t.warned) < logInterval {
		return
	}
	t.warned = now
	if left <= 0 {
		t.log.Error("server token expired: rules and gates are not updated until there is a new token",
			"ended", t.ends.UTC())
		return
	}
	t.log.Warn("server token expires soon: replace it", "ends", t.ends.UTC(), "days", int(left/(24*time.Hour)))
}

// End returns the token's expiry; zero: never, or unknown.
func (t *Token) End() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends
}

// Hint returns advice about a status of the server; empty: none.
func Hint(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ", the token must belong to the organization, have the scope connect, and not have expired"
	case http.StatusNotFound:
		return ", there are no rules at this address"
	}
	return ""
}
