package account

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
)

// secretSize is the number of random bytes in a token of any kind.
const secretSize = 32

var errSecret = errors.New("not a token")

// random makes random secrets and ids.
type random struct{ io.Reader }

// secret returns a new random token as text, and its hash.
func (r random) secret(prefix string) (text string, hash []byte, err error) {
	b := make([]byte, secretSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", nil, fmt.Errorf("make token: %w", err)
	}
	text = prefix + base64.RawURLEncoding.EncodeToString(b)
	return text, hashOf(text), nil
}

// hashOf returns the stored hash of a random token. A fast hash is enough, because a 256-bit token
// cannot be guessed.
func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// isSecret returns an error if text is not a well-formed token, so that malformed ones cost no
// query.
func isSecret(prefix, text string) error {
	body, ok := strings.CutPrefix(text, prefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if !ok || err != nil || len(b) != secretSize {
		return errSecret
	}
	return nil
}

// id returns a random UUID.
func (r random) id() (uuid.UUID, error) {
	id, err := uuid.NewRandomFromReader(r)
	if err != nil {
		return uuid.Nil, fmt.Errorf("make id: %w", err)
	}
	return id, nil
}
