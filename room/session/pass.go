package session

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/projection"
)

// Pass lets an admitted visitor into the protected site.
type Pass struct {
	Token   string // JWT, EdDSA; a credential, never logged
	ID      fairness.PassID
	Expires time.Time
}

// passClaims are the claims of a pass.
type passClaims struct {
	jwt.RegisteredClaims
	Position uint64 `json:"position"`
	Lane     string `json:"lane"`
}

// Passes signs and verifies the passes of one room. It is safe for concurrent use.
type Passes struct {
	room   Room
	policy *fairness.Policy
	keys   *PassKeys
}

// Issue signs the pass of an admitted ticket. The claims of a ticket never change, so asking twice does not
// give a second pass.
func (p *Passes) Issue(st fairness.Standing) (Pass, error) {
	claims, key := p.claims(st), p.keys.signing()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"] = key.id
	text, err := token.SignedString(key.private)
	if err != nil {
		return Pass{}, fmt.Errorf("sign pass: %w", err)
	}
	return Pass{Token: text, ID: fairness.NewPassID(p.room.Origin, st.Ticket), Expires: claims.ExpiresAt.Time}, nil
}

// claims returns the claims for an admission in the transcript.
func (p *Passes) claims(st fairness.Standing) passClaims {
	admitted := millis.Time(st.Settled)
	return passClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    p.room.URL,
			Audience:  jwt.ClaimStrings{p.room.Origin},
			Subject:   st.Ticket.String(),
			ID:        fairness.NewPassID(p.room.Origin, st.Ticket).String(),
			IssuedAt:  jwt.NewNumericDate(admitted),
			NotBefore: jwt.NewNumericDate(admitted),
			ExpiresAt: jwt.NewNumericDate(p.expiry(admitted)),
		},
		Position: uint64(st.Position),
		Lane:     string(st.Lane),
	}
}

// signedPass is a pass whose signature is valid; nothing else is checked yet.
type signedPass struct {
	claims passClaims
	ticket fairness.Ticket
}

// read verifies the signature of a pass. The key must have been in use less than life ago. Errors: [ErrPass], and
// those of the database.
func (p *Passes) read(ctx context.Context, token string, life time.Duration) (s signedPass, err error) {
	_, err = passParser.ParseWithClaims(token, &s.claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		return p.keys.verifying(ctx, id, life)
	})
	if failed := (*keyError)(nil); errors.As(err, &failed) {
		return s, failed.err
	}
	if err != nil {
		return s, ErrPass
	}
	if s.ticket, err = fairness.ParseTicket(s.claims.Subject); err != nil {
		return s, ErrPass
	}
	return s, nil
}

// compare returns [ErrPass] unless the claims of a pass match the transcript.
func (p *Passes) compare(s signedPass, st fairness.Standing) error {
	has, _ := json.Marshal(s.claims)
	want, _ := json.Marshal(p.claims(st))
	if !bytes.Equal(has, want) {
		return ErrPass
	}
	return nil
}

// passParser does not check the times: the callers do.
var passParser = jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithoutClaimsValidation(),
	jwt.WithStrictDecoding())

// expiry returns the end of a pass in whole seconds, as it appears in tokens. It rounds up, so that no pass is
// shorter than promised.
func (p *Passes) expiry(admitted time.Time) time.Time {
	within := time.Duration(projection.PassLife(p.policy)) * time.Millisecond
	return admitted.Add(within + time.Second - 1).Truncate(time.Second)
}

// life returns how long after its issue the signature of a pass may be verified: the validity plus the rounding of
// the expiry.
func (p *Passes) life() time.Duration { return p.length() + maxRounding }

// length returns how long a session lasts after its latest touch.
func (p *Passes) length() time.Duration { return time.Duration(p.policy.Session) * time.Millisecond }

// PublicKeys returns the keys that verify the room's passes, newest first.
func (p *Passes) PublicKeys() []PassKey { return p.keys.Public(p.life()) }

// PassKey is the public key of a room's passes as a JSON Web Key (RFC 8037).
type PassKey struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	Algorithm string `json:"alg"` // EdDSA
	Use       string `json:"use"` // sig
	ID        string `json:"kid"` // RFC 7638 thumbprint
	X         string `json:"x"`   // public key, base64url
}

// jwk returns the public key.
func (k passKey) jwk() PassKey {
	return PassKey{Type: "OKP", Curve: "Ed25519", Algorithm: "EdDSA", Use: "sig", ID: k.id, X: publicX(k.private)}
}

func publicX(k ed25519.PrivateKey) string {
	public, _ := k.Public().(ed25519.PublicKey)
	return base64.RawURLEncoding.EncodeToString(public)
}

// keyID returns the JWK thumbprint (RFC 7638) of the public key.
func keyID(k ed25519.PrivateKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + publicX(k) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
