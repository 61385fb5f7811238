package room

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/fairness"
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

// newPass signs the pass of an admitted ticket. The same ticket always gets
// the same claims, so asking twice does not give a second pass.
func (r *Room) newPass(st fairness.Standing) (Pass, error) {
	admitted := timeOf(st.Settled)
	p := Pass{ID: fairness.NewPassID(r.Origin, st.Ticket), Expires: r.expiry(admitted)}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, passClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    r.URL,
			Audience:  jwt.ClaimStrings{r.Origin},
			Subject:   st.Ticket.String(),
			ID:        p.ID.String(),
			IssuedAt:  jwt.NewNumericDate(admitted),
			NotBefore: jwt.NewNumericDate(admitted),
			ExpiresAt: jwt.NewNumericDate(p.Expires),
		},
		Position: uint64(st.Position),
		Lane:     string(st.Lane),
	})
	token.Header["kid"] = keyID(r.keys.pass)
	var err error
	if p.Token, err = token.SignedString(r.keys.pass); err != nil {
		return Pass{}, fmt.Errorf("sign pass: %w", err)
	}
	return p, nil
}

// expiry returns the end of a session in whole seconds, as tokens say it:
// rounded up, for a session is not to be shorter than promised.
func (r *Room) expiry(admitted time.Time) time.Time {
	return admitted.Add(time.Duration(r.policy.Session)*time.Millisecond + time.Second - 1).Truncate(time.Second)
}

// PassKey is the public key of a room's passes as a JSON Web Key (RFC 8037).
type PassKey struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	Algorithm string `json:"alg"` // EdDSA
	Use       string `json:"use"` // sig
	ID        string `json:"kid"` // RFC 7638 thumbprint
	X         string `json:"x"`   // public key, base64url
}

// PassKeys returns the keys that verify the room's passes.
func (r *Room) PassKeys() []PassKey {
	return []PassKey{{Type: "OKP", Curve: "Ed25519", Algorithm: "EdDSA", Use: "sig", ID: keyID(r.keys.pass), X: publicX(r.keys.pass)}}
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
