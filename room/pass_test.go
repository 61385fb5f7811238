package room

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
)

// TestKeyID checks the thumbprint of the one key that has a published one
// (https://www.rfc-editor.org/rfc/rfc8037#appendix-A).
func TestKeyID(t *testing.T) {
	t.Parallel()
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{keys: &keys.Keys{Pass: ed25519.NewKeyFromSeed(seed)}}
	want := []PassKey{{
		Type: "OKP", Curve: "Ed25519", Algorithm: "EdDSA", Use: "sig",
		ID: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", X: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
	}}
	if diff := cmp.Diff(want, r.PassKeys()); diff != "" {
		t.Errorf("pass keys (-want +got):\n%s", diff)
	}
}

// TestPass reads a pass as a protected site does.
func TestPass(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{
		Origin: "example.com/r/a", URL: "https://example.com/r/a",
		keys: &keys.Keys{Pass: private}, policy: &fairness.Policy{Session: 90_500}, clock: clock.New(0),
	}
	admitted := time.Now().Truncate(time.Second).Add(123 * time.Millisecond)
	st := fairness.Standing{
		Ticket: fairness.NewTicket(r.Origin, [32]byte{1}), Lane: fairness.General, Status: fairness.StatusAdmitted,
		Position: 7, Settled: fromTime(admitted),
	}
	pass, err := r.passOf(st)
	if err != nil {
		t.Fatal(err)
	}
	wantExpires := admitted.Truncate(time.Second).Add(91 * time.Second)
	if pass.ID != fairness.NewPassID(r.Origin, st.Ticket) || !pass.Expires.Equal(wantExpires) || pass.Expires.Location() != time.UTC {
		t.Errorf("pass %s until %v, want until %v", pass.ID, pass.Expires, wantExpires)
	}
	claims := jwt.MapClaims{}
	token, err := jwt.ParseWithClaims(pass.Token, claims, func(token *jwt.Token) (any, error) {
		if token.Header["kid"] != r.PassKeys()[0].ID || token.Header["alg"] != "EdDSA" {
			t.Errorf("header %v", token.Header)
		}
		x, err := base64.RawURLEncoding.DecodeString(r.PassKeys()[0].X)
		return ed25519.PublicKey(x), err
	}, jwt.WithValidMethods([]string{"EdDSA"}))
	if err != nil || !token.Valid {
		t.Fatal(err)
	}
	second := float64(admitted.Unix())
	want := jwt.MapClaims{
		"iss": r.URL, "aud": []any{r.Origin}, "sub": st.Ticket.String(), "jti": pass.ID.String(),
		"iat": second, "nbf": second, "exp": float64(wantExpires.Unix()), "position": 7.0, "lane": "general",
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if again, err := r.passOf(st); err != nil || again != pass {
		t.Errorf("asked again: another pass, %v", err)
	}
	st.Settled -= 92_000
	if _, err := r.passOf(st); err != ErrExpired { //nolint:errorlint // exactly this one
		t.Errorf("after the session: %v, want ErrExpired", err)
	}
}
