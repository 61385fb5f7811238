package room

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

// newPass signs the pass of an admitted ticket. The claims of a ticket never change, so asking twice does not
// give a second pass.
func (r *Room) newPass(st fairness.Standing) (Pass, error) {
	claims, key := r.claims(st), r.signingKey()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"] = key.id
	text, err := token.SignedString(key.private)
	if err != nil {
		return Pass{}, fmt.Errorf("sign pass: %w", err)
	}
	return Pass{Token: text, ID: fairness.NewPassID(r.Origin, st.Ticket), Expires: claims.ExpiresAt.Time}, nil
}

// claims returns the claims for an admission in the transcript.
func (r *Room) claims(st fairness.Standing) passClaims {
	admitted := timeOf(st.Settled)
	return passClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    r.URL,
			Audience:  jwt.ClaimStrings{r.Origin},
			Subject:   st.Ticket.String(),
			ID:        fairness.NewPassID(r.Origin, st.Ticket).String(),
			IssuedAt:  jwt.NewNumericDate(admitted),
			NotBefore: jwt.NewNumericDate(admitted),
			ExpiresAt: jwt.NewNumericDate(r.expiry(admitted)),
		},
		Position: uint64(st.Position),
		Lane:     string(st.Lane),
	}
}

// admission returns the admission of a pass. The token must be signed by a key that was in use at most life
// before now, and its claims must match the transcript; its expiry is not checked. Errors: [ErrPass], and
// those of the database.
func (r *Room) admission(ctx context.Context, token string, life time.Duration) (fairness.Standing, error) {
	s, err := r.readPass(ctx, token, life)
	if err != nil {
		return fairness.Standing{}, err
	}
	st, err := r.admitted(ctx, s.ticket)
	if err != nil {
		return st, err
	}
	return st, r.compare(s, st)
}

// shown is a pass whose signature is valid; nothing else is checked yet.
type shown struct {
	claims passClaims
	ticket fairness.Ticket
}

// readPass verifies the signature of a pass. Errors: those of admission.
func (r *Room) readPass(ctx context.Context, token string, life time.Duration) (s shown, err error) {
	_, err = passParser.ParseWithClaims(token, &s.claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		return r.passKey(ctx, id, life)
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
func (r *Room) compare(s shown, st fairness.Standing) error {
	told, _ := json.Marshal(s.claims)
	want, _ := json.Marshal(r.claims(st))
	if !bytes.Equal(told, want) {
		return ErrPass
	}
	return nil
}

// passParser does not check the times: admission and its callers do.
var passParser = jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithoutClaimsValidation(),
	jwt.WithStrictDecoding())

// admitted returns the standing of an admitted ticket. It reads the log if another node may have admitted the
// ticket just now.
func (r *Room) admitted(ctx context.Context, t fairness.Ticket) (fairness.Standing, error) {
	if st, ok := r.Standing(t); ok && st.Status == fairness.StatusAdmitted {
		return st, nil
	}
	if err := r.readLatest(ctx); err != nil {
		return fairness.Standing{}, err
	}
	if st, ok := r.Standing(t); ok && st.Status == fairness.StatusAdmitted {
		return st, nil
	}
	return fairness.Standing{}, ErrPass
}

// readLatest waits until this node has read everything that other nodes have appended by now.
func (r *Room) readLatest(ctx context.Context) error {
	return r.act(ctx, func(*fairness.State, fairness.Time) ([]fairness.Entry, error) { return nil, nil })
}

// expiry returns the end of a pass in whole seconds, as tokens contain it. It rounds up, so that no pass is
// shorter than promised.
func (r *Room) expiry(admitted time.Time) time.Time {
	within := time.Duration(redeemWithin(r.policy)) * time.Millisecond
	return admitted.Add(within + time.Second - 1).Truncate(time.Second)
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
