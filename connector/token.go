package connector

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// tokenWarnBefore is how long before the token's expiry warnings start, and
// tokenLogInterval the time between them.
const (
	tokenWarnBefore  = 14 * 24 * time.Hour
	tokenLogInterval = 24 * time.Hour
)

// bearer is the token for the server, with its expiry.
type bearer struct {
	file string // read before each use; empty: the token does not change
	log  *slog.Logger

	mu        sync.Mutex
	text      string
	ends      time.Time // zero: never, or unknown
	warned    time.Time // last warning about the expiry
	lastError string    // last logged error of reading the file
}

// readToken reads a token from a file. Error: [ErrToken].
func readToken(file string) (string, error) {
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

// current returns the token; if its file cannot be read, the previous one.
func (b *bearer) current() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == "" {
		return b.text
	}
	text, err := readToken(b.file)
	if err == nil {
		b.lastError = ""
		if text != b.text {
			b.text, b.ends, b.warned = text, time.Time{}, time.Time{}
			b.log.Info("using a new server token", "file", b.file)
		}
		return b.text
	}
	if what := err.Error(); what != b.lastError {
		b.lastError = what
		b.log.Error("cannot read the token file: using the previous token", "err", err)
	}
	return b.text
}

// setEnd stores the expiry that the server reported for a token; 0: never.
func (b *bearer) setEnd(shown string, ms int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if shown != b.text {
		return
	}
	b.ends = time.Time{}
	if ms > 0 {
		b.ends = time.UnixMilli(ms)
	}
}

// warn logs once a day that the token expires soon, or has expired.
func (b *bearer) warn(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.ends.Sub(now)
	if b.ends.IsZero() || left > tokenWarnBefore || !b.warned.IsZero() && now.Sub(b.warned) < tokenLogInterval {
		return
	}
	b.warned = now
	if left <= 0 {
		b.log.Error("server token expired: rules and gates are not updated until there is a new token",
			"ended", b.ends.UTC())
		return
	}
	b.log.Warn("server token expires soon: replace it", "ends", b.ends.UTC(), "days", int(left/(24*time.Hour)))
}

// end returns the token's expiry; zero: never, or unknown.
func (b *bearer) end() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends
}

// fillToken sets Token from TokenFile. Error: [ErrToken].
func (o *Options) fillToken() (err error) {
	if o.TokenFile == "" {
		return nil
	}
	if o.Token != "" {
		return fmt.Errorf("%w: give either Token or TokenFile", ErrToken)
	}
	o.Token, err = readToken(o.TokenFile)
	return err
}
