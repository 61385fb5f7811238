package connector

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// tokenSoon is how long before its end the log begins to tell of a token, and
// tokenAgain how often it does.
const (
	tokenWarnBefore  = 14 * 24 * time.Hour
	tokenLogInterval = 24 * time.Hour
)

// bearer is the token that is shown to the server, and when it ends.
type bearer struct {
	file string // that it is read from each time; empty: it does not change
	log  *slog.Logger

	mu        sync.Mutex
	text      string
	ends      time.Time // zero: never, or the server did not say
	warned    time.Time // when the log last told of the end
	lastError string    // with the file, as it was logged
}

// readToken reads the token of a file. Error: [ErrToken].
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the owner names the file
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: %s has none", ErrToken, file)
	}
	return string(text), nil
}

// show returns the token. While its file cannot be read it is the one before.
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
			b.log.Info("a new token", "file", b.file)
		}
		return b.text
	}
	if what := err.Error(); what != b.lastError {
		b.lastError = what
		b.log.Error("the token's file cannot be read: the token before is used", "err", err)
	}
	return b.text
}

// hear takes when the token ends that was shown; 0: never.
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

// warn logs once a day that the token ends soon, or has ended.
func (b *bearer) warn(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.ends.Sub(now)
	if b.ends.IsZero() || left > tokenWarnBefore || !b.warned.IsZero() && now.Sub(b.warned) < tokenLogInterval {
		return
	}
	b.warned = now
	if left <= 0 {
		b.log.Error("the token has ended: rules stay as they are, and gates count for themselves, until there is another", "ended", b.ends.UTC())
		return
	}
	b.log.Warn("the token ends soon: give this connector another", "ends", b.ends.UTC(), "days", int(left/(24*time.Hour)))
}

// end returns when the token ends; zero: never, or nobody said.
func (b *bearer) end() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends
}

// fillToken finds the token. Error: [ErrToken].
func (o *Options) fillToken() (err error) {
	if o.TokenFile == "" {
		return nil
	}
	if o.Token != "" {
		return fmt.Errorf("%w: give Token or TokenFile", ErrToken)
	}
	o.Token, err = readToken(o.TokenFile)
	return err
}
