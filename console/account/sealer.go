package account

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Sealer encrypts secrets at rest, each for one purpose. [keys.MasterKey] implements it.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// sealer seals values that browsers and links carry.
type sealer struct{ Sealer }

// sealJSON returns v in a form that only this server can read and write.
func (s *sealer) sealJSON(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode sealed value: %w", err)
	}
	return s.sealText(purpose, string(text)), nil
}

// openJSON decodes a result of [sealer.sealJSON].
func (s *sealer) openJSON(purpose, sealed string, v any) error {
	text, err := s.openText(purpose, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}

func (s *sealer) sealText(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString(s.Seal(purpose, []byte(text)))
}

func (s *sealer) openText(purpose, sealed string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", err
	}
	text, err := s.Open(purpose, b)
	return string(text), err
}
