package webhook

import (
	"encoding/base64"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32 // bytes; the specification asks for 24 to 64
	// rotationOverlap is how long the previous secret also signs after a rotation.
	rotationOverlap = 24 * time.Hour
)

// Sealer encrypts secrets for the database. [keys.MasterKey] implements it.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

func purpose(endpoint uuid.UUID) string { return "webhook/" + endpoint.String() }

// signer makes the secrets of endpoints, and signs deliveries with them.
type signer struct {
	sealer Sealer
	random io.Reader
}

// newSecret returns a new secret, as shown to people and as stored.
func (s *signer) newSecret(endpoint uuid.UUID) (shown string, sealed []byte, err error) {
	b := make([]byte, secretSize)
	if _, err := s.random.Read(b); err != nil {
		return "", nil, fmt.Errorf("make secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(b), s.sealer.Seal(purpose(endpoint), b), nil
}

// sign returns the header webhook-signature: one signature, and a second one while the previous
// secret is still valid.
func (s *signer) sign(t *pgwebhook.Taken, id string, now time.Time) (string, error) {
	signature, err := s.signWith(t, t.Secret, id, now)
	if err != nil || t.Former == nil || t.FormerUntil == nil || !now.Before(*t.FormerUntil) {
		return signature, err
	}
	former, err := s.signWith(t, t.Former, id, now)
	return signature + " " + former, err
}

func (s *signer) signWith(t *pgwebhook.Taken, sealed []byte, id string, now time.Time) (string, error) {
	secret, err := s.sealer.Open(purpose(t.Target), sealed)
	if err != nil {
		return "", fmt.Errorf("open secret: %w", err)
	}
	w, err := standardwebhooks.NewWebhookRaw(secret)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	signature, err := w.Sign(id, now, []byte(t.Payload))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signature, nil
}
