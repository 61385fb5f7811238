package account

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// sealJSON returns v in a form that only this server can read and write.
func (a *Accounts) sealJSON(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode sealed value: %w", err)
	}
	return a.sealText(purpose, string(text)), nil
}

// openJSON decodes a result of [Accounts.sealJSON].
func (a *Accounts) openJSON(purpose, sealed string, v any) error {
	text, err := a.openText(purpose, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}

func (a *Accounts) sealText(purpose, text string) string {
	return base64.RawURLEncoding.EncodeToString(a.Sealer.Seal(purpose, []byte(text)))
}

func (a *Accounts) openText(purpose, sealed string) (string, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", err
	}
	text, err := a.Sealer.Open(purpose, b)
	return string(text), err
}
