package connector

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// errPass is returned for passes that are malformed, expired, used, or for another
// room.
var errPass = errors.New("no valid pass")

// passClaims are the claims of a verified pass.
type passClaims struct {
	token  string
	ticket [16]byte
	pass   [16]byte
	jti    string
	ends   int64 // expiry, in ms since 1970
}

// issuerOf returns the issuer in a token without verifying it.
func issuerOf(token string) string {
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

// verify verifies a pass with the room's public keys. Errors: errPass;
// errUnreachable if the keys are missing and cannot be fetched.
func (c *Connector) verify(ctx context.Context, rm *room, token string) (passClaims, error) {
	if len(token) > maxToken {
		return passClaims{}, errPass
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer(rm.URL), jwt.WithAudience(rm.Origin),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithNotBeforeRequired(), jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(c.options.Now), jwt.WithStrictDecoding())
	var said jwt.RegisteredClaims
	_, err := parser.ParseWithClaims(token, &said, func(t *jwt.Token) (any, error) {
		for name := range t.Header {
			if name != "alg" && name != "kid" && name != "typ" { // a token must not name its own key
				return nil, errPass
			}
		}
		id, ok := t.Header["kid"].(string)
		if !ok {
			return nil, errPass
		}
		return c.key(ctx, rm, id)
	})
	if errors.Is(err, errUnreachable) {
		return passClaims{}, errUnreachable
	}
	if err != nil || !slices.Equal(said.Audience, jwt.ClaimStrings{rm.Origin}) {
		return passClaims{}, errPass
	}
	out := passClaims{token: token, jti: said.ID, ends: said.ExpiresAt.Add(leeway).UnixMilli()}
	var isTicket, isPass bool
	out.ticket, isTicket = parseUUID(said.Subject)
	out.pass, isPass = parseUUID(said.ID)
	if !isTicket || !isPass || out.ticket == [16]byte{} {
		return passClaims{}, errPass
	}
	return out, nil
}

// key returns a key of the room. An unknown id may be of a new key: then the keys
// are fetched, at most once per keysInterval.
func (c *Connector) key(ctx context.Context, rm *room, id string) (ed25519.PublicKey, error) {
	st := rm.state
	if k, ok := st.key(id); ok {
		return k, nil
	}
	st.fetching.Lock()
	defer st.fetching.Unlock()
	if k, ok := st.key(id); ok {
		return k, nil
	}
	if now := c.options.Now(); now.Sub(st.fetchedAt) >= keysInterval {
		st.fetchedAt = now
		if err := c.fetchKeys(ctx, rm); err != nil {
			return nil, err
		}
	}
	if k, ok := st.key(id); ok {
		return k, nil
	}
	if st.keys.Load() == nil {
		return nil, errUnreachable
	}
	return nil, errPass
}

func (st *roomState) key(id string) (ed25519.PublicKey, bool) {
	if keys := st.keys.Load(); keys != nil {
		k, ok := (*keys)[id]
		return k, ok
	}
	return nil, false
}

// fetchKeys fetches the room's keys.
func (c *Connector) fetchKeys(ctx context.Context, rm *room) error {
	var found struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := c.getJSON(ctx, rm, rm.URL+"/.well-known/openid-configuration", &found); err != nil {
		return err
	}
	if found.Issuer != rm.URL || !strings.HasPrefix(found.Keys, rm.URL+"/") {
		return fmt.Errorf("keys of %s: the room names itself %q: %w", rm.URL, found.Issuer, errPass)
	}
	var set keySet
	if err := c.getJSON(ctx, rm, found.Keys, &set); err != nil {
		return err
	}
	if keys := set.usable(); len(keys) > 0 {
		rm.state.keys.Store(&keys)
	}
	return nil
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
