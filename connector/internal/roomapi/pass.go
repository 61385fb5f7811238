package roomapi

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/connector/internal/id"
)

const (
	leeway   = 5 * time.Second // tolerance for clock skew in passes
	maxToken = 2048            // length of a pass, in bytes
)

// ErrPass is returned for passes that are malformed, expired, used, or for another
// room.
var ErrPass = errors.New("no valid pass")

// Pass is a verified pass.
type Pass struct {
	token  string
	ticket id.ID
	pass   id.ID
	jti    string
	ends   int64 // expiry, in ms since 1970
}

// IssuerOf returns the issuer in a token without verifying it.
func IssuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return ""
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var said struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(body, &said) != nil {
		return ""
	}
	return said.Issuer
}

// Verify verifies a pass with the room's public keys. Errors: ErrPass; ErrUnreachable if the keys
// are missing and cannot be fetched.
func (s *Server) Verify(ctx context.Context, token string) (Pass, error) {
	if len(token) > maxToken {
		return Pass{}, ErrPass
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer(s.url), jwt.WithAudience(s.origin),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithNotBeforeRequired(), jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(s.options.Now), jwt.WithStrictDecoding())
	var said jwt.RegisteredClaims
	_, err := parser.ParseWithClaims(token, &said, func(t *jwt.Token) (any, error) {
		for name := range t.Header {
			if name != "alg" && name != "kid" && name != "typ" { // a token must not name its own key
				return nil, ErrPass
			}
		}
		name, ok := t.Header["kid"].(string)
		if !ok {
			return nil, ErrPass
		}
		return s.key(ctx, name)
	})
	if errors.Is(err, ErrUnreachable) {
		return Pass{}, ErrUnreachable
	}
	if err != nil || !slices.Equal(said.Audience, jwt.ClaimStrings{s.origin}) {
		return Pass{}, ErrPass
	}
	out := Pass{token: token, jti: said.ID, ends: said.ExpiresAt.Add(leeway).UnixMilli()}
	var isTicket, isPass bool
	out.ticket, isTicket = id.ParseUUID(said.Subject)
	out.pass, isPass = id.ParseUUID(said.ID)
	if !isTicket || !isPass || out.ticket == (id.ID{}) {
		return Pass{}, ErrPass
	}
	return out, nil
}

// keySet is a JSON Web Key Set (RFC 7517, RFC 8037).
type keySet struct {
	Keys []struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		Algorithm string `json:"alg"`
		Use       string `json:"use"`
		ID        string `json:"kid"`
		X         string `json:"x"`
	} `json:"keys"`
}

func (s keySet) usable() map[string]ed25519.PublicKey {
	keys := map[string]ed25519.PublicKey{}
	for _, k := range s.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err == nil && len(x) == ed25519.PublicKeySize && k.Type == "OKP" && k.Curve == "Ed25519" && k.ID != "" &&
			(k.Use == "" || k.Use == "sig") && (k.Algorithm == "" || k.Algorithm == "EdDSA") {
			keys[k.ID] = x
		}
	}
	return keys
}
