// Package counted compares what issuers count with what a room's tickets showed.
//
// An issuer publishes a signed count of the accounts that have a credential ([issued.Count]). If more tickets showed
// one, the issuer signs more than it counts, or somebody else has its key.
package counted

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issued"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
)

// Method compares the count of an issuer with the tickets that showed a method.
type Method struct {
	By       string `json:"by"` // name under which the count is signed
	Method   string `json:"method"`
	Accounts uint64 `json:"accounts"` // that have a credential, as the issuer counts
	Shown    uint64 `json:"shown"`    // tickets that showed one
	Millis   int64  `json:"time"`     // of the count, by the issuer's clock, since the Unix epoch
}

// Contradicts reports whether more tickets showed the method than accounts have a credential. The count must have
// been read after the transcript.
func (m Method) Contradicts() bool { return m.Shown > m.Accounts }

// Text says what the comparison shows.
func (m Method) Text() string {
	accounts := "no account"
	if m.Accounts > 0 {
		accounts = numeral.Count(m.Accounts, "account", "accounts")
	}
	text := fmt.Sprintf("%s has signed at %s that %s had got a credential for %s, and %s showed one.", m.By,
		time.UnixMilli(m.Millis).UTC().Format("2006-01-02 15:04:05 UTC"), accounts, m.Method,
		numeral.Count(m.Shown, "ticket", "tickets"))
	if m.Contradicts() {
		return text + " So the issuer signs more than it counts, or somebody else has its key. The issuer can find the tickets " +
			"that it has not vouched for: proofline issuer check."
	}
	return text + " The count is its word, too: it does not show that these accounts belong to different people."
}

// Errors of this package.
var (
	ErrKey  = errors.New("not an issuer's key")
	ErrRoom = errors.New("the issuer counts no credentials of this room")
)

// ParseKey reads the key that verifies counts, as an issuer prints it in signed-note form, or returns [ErrKey].
func ParseKey(text string) (ed25519.PublicKey, error) {
	_, err := note.NewVerifier(text)
	parts := strings.SplitN(text, "+", 3)
	key, err2 := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || err2 != nil || len(key) != 1+ed25519.PublicKeySize {
		return nil, ErrKey
	}
	return key[1:], nil
}

// readTime is the time limit for reading a count.
const readTime = 30 * time.Second

// Read reads a count from an address or a file.
func Read(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		return os.ReadFile(from) //nolint:gosec // named by the user
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r) //nolint:gosec // named by the user
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with %s", from, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, issued.MaxSize+1))
}

// Compare compares a count with the tickets of each method that it is about. entry is the hash of the room's first
// entry. The keys in the policy verify the count, and others that the reader trusts: they are of issuers that only sign
// blindly, which no policy names. It returns [ErrRoom], or an error of [issued.Open].
func Compare(count []byte, r *verifier.Report, entry [sha256.Size]byte, others []ed25519.PublicKey) ([]Method, error) {
	keys := slices.Clone(others)
	for _, m := range r.Methods {
		if key, err := hex.DecodeString(m.Key); err == nil && m.Kind == credential.Signed {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		c, err := issued.Open(count, key)
		if errors.Is(err, issued.ErrKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var list []Method
		for _, m := range r.Methods {
			isCounted := m.Kind == credential.Blind || m.Kind == credential.Signed && m.Key == hex.EncodeToString(key)
			if accounts, isOffered := c.Of(entry, m.Name); isOffered && isCounted {
				list = append(list, Method{By: c.By, Method: m.Name, Accounts: accounts, Shown: uint64(m.Shown),
					Millis: c.Millis})
			}
		}
		if list == nil {
			return nil, ErrRoom
		}
		return list, nil
	}
	return nil, issued.ErrKey
}
