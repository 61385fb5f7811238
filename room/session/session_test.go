package session

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/pgroom"
)

// passKeys are the keys of a room with this first key only.
func passKeys(first ed25519.PrivateKey) *PassKeys {
	return NewPassKeys(uuid.New(), first, nil, nil, clock.New(0))
}

// TestKeyID checks the thumbprint of the only key with a published one
// (https://www.rfc-editor.org/rfc/rfc8037#appendix-A).
func TestKeyID(t *testing.T) {
	t.Parallel()
	seed, err := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	if err != nil {
		t.Fatal(err)
	}
	k := passKeys(ed25519.NewKeyFromSeed(seed))
	want := []PassKey{{
		Type: "OKP", Curve: "Ed25519", Algorithm: "EdDSA", Use: "sig",
		ID: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", X: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
	}}
	if diff := cmp.Diff(want, k.Public(time.Hour)); diff != "" {
		t.Errorf("pass keys (-want +got):\n%s", diff)
	}
}

// TestPass parses a pass like a protected site.
func TestPass(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Room{Origin: "example.com/r/a", URL: "https://example.com/r/a"}
	passes := &Passes{r, &fairness.Policy{Session: 90_500}, passKeys(private)}
	admitted := time.Now().Truncate(time.Second).Add(123 * time.Millisecond)
	st := fairness.Standing{
		Ticket: fairness.NewTicket(r.Origin, [32]byte{1}), Lane: fairness.General, Status: fairness.StatusAdmitted,
		Position: 7, Settled: millis.Of(admitted),
	}
	pass, err := passes.Issue(st)
	if err != nil {
		t.Fatal(err)
	}
	wantExpires := admitted.Truncate(time.Second).Add(91 * time.Second)
	if pass.ID != fairness.NewPassID(r.Origin, st.Ticket) || !pass.Expires.Equal(wantExpires) || pass.Expires.Location() != time.UTC {
		t.Errorf("pass %s until %v, want until %v", pass.ID, pass.Expires, wantExpires)
	}
	claims := jwt.MapClaims{}
	token, err := jwt.ParseWithClaims(pass.Token, claims, func(token *jwt.Token) (any, error) {
		if token.Header["kid"] != passes.PublicKeys()[0].ID || token.Header["alg"] != "EdDSA" {
			t.Errorf("header %v", token.Header)
		}
		x, err := base64.RawURLEncoding.DecodeString(passes.PublicKeys()[0].X)
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
	if again, err := passes.Issue(st); err != nil || again != pass {
		t.Errorf("asked again: another pass, %v", err)
	}
}

// TestKeysRetire publishes a replaced key for as long as its passes may be valid, and accepts it for as long
// as a session may last.
func TestKeysRetire(t *testing.T) {
	t.Parallel()
	const length = 10 * time.Minute
	key := func(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(append(make([]byte, 31), n)) }
	keys := passKeys(key(0))
	passes := &Passes{Room{}, &fairness.Policy{Session: fairness.Millis(length.Milliseconds())}, keys}
	edge := time.Second + rotationGrace
	for _, c := range []struct {
		followed []time.Duration // ages of all keys but the last
		life     time.Duration
		want     int
	}{
		{nil, length, 1},
		{[]time.Duration{length + edge - time.Second}, length + time.Second, 2},
		{[]time.Duration{length + edge + time.Second}, length + time.Second, 1},
		{[]time.Duration{length + edge + time.Second}, MaxLengths*length + time.Second, 2},
		{[]time.Duration{MaxLengths*length + edge + time.Second}, MaxLengths*length + time.Second, 1},
		{[]time.Duration{10 * length, time.Minute}, length + time.Second, 2},
		{[]time.Duration{time.Hour, time.Minute, time.Second}, length + time.Second, 3},
	} {
		var added []passKey
		for i, ago := range c.followed {
			k := key(byte(i + 1))
			added = append(added, passKey{k, keyID(k), time.Now().Add(-ago)})
		}
		keys.added.Store(&added)
		if got := keys.usedWithin(c.life); len(got) != c.want {
			t.Errorf("followed %v ago: %d keys within %v, want %d", c.followed, len(got), c.life, c.want)
		}
		if got := passes.PublicKeys(); c.life == length+time.Second && len(got) != c.want {
			t.Errorf("followed %v ago: %d keys published, want %d", c.followed, len(got), c.want)
		}
		if signing := keys.signing(); len(added) > 0 && signing.id != added[len(added)-1].id {
			t.Error("it is not the newest key that signs")
		}
	}
}

// TestKeptKeys: a slow reader does not overwrite keys that a fast one has read with older ones.
func TestKeptKeys(t *testing.T) {
	t.Parallel()
	k := &PassKeys{}
	k.keep(make([]passKey, 2))
	k.keep(make([]passKey, 1))
	if got := len(k.others()); got != 2 {
		t.Errorf("%d keys of 2", got)
	}
}

// keyReads counts reads of the keys made by rotation.
type keyReads struct {
	PassKeyStore
	n int
}

func (k *keyReads) PassKeys(context.Context, uuid.UUID) ([]pgroom.PassKey, error) {
	k.n++
	return nil, nil
}

// TestUnknownKeys: passes that name unknown keys do not make the node read the database for each.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := &keyReads{}
		keys := NewPassKeys(uuid.New(), ed25519.NewKeyFromSeed(make([]byte, 32)), nil, reads, clock.New(0))
		for range 200 {
			if _, err := keys.verifying(t.Context(), "unknown", time.Hour); !errors.Is(err, ErrPass) {
				t.Fatalf("unknown key: %v, want ErrPass", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if reads.n < 1 || reads.n > 3 {
			t.Errorf("the keys were read %d times in two seconds", reads.n)
		}
	})
}

// TestSignReturn checks the vectors that connectors also use.
func TestSignReturn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../connector/testdata/return-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Key, Room, To, Sig string }
	if err := json.Unmarshal(text, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d vectors, %v", len(list), err)
	}
	for _, v := range list {
		key, err := base64.RawURLEncoding.DecodeString(v.Key)
		if err != nil || len(key) != ReturnKeySize {
			t.Fatalf("%s: key of %d bytes, %v", v.Name, len(key), err)
		}
		if got := base64.RawURLEncoding.EncodeToString(signReturn([ReturnKeySize]byte(key), v.Room, v.To)); got != v.Sig {
			t.Errorf("%s: %s, want %s", v.Name, got, v.Sig)
		}
	}
}

// TestReturnKeyRotates: the next key signs once all nodes know it, and signatures of the previous one are
// accepted for a day.
func TestReturnKeyRotates(t *testing.T) {
	t.Parallel()
	const page = "https://shop.example.com/cart"
	const url = "https://queue.example.com/r/sale"
	keys := passKeys(ed25519.NewKeyFromSeed(make([]byte, 32)))
	first := keys.ReturnKey()
	if first == [ReturnKeySize]byte{} || first == [ReturnKeySize]byte(keys.first.Seed()) {
		t.Fatalf("key %x", first)
	}
	next := ed25519.NewKeyFromSeed([]byte(strings.Repeat("n", 32)))
	for _, c := range []struct {
		name             string
		ago              time.Duration
		signs            [ReturnKeySize]byte
		takesOld, takesN bool
	}{
		{"just now", 0, first, true, true},
		{"a minute ago", rotationGrace, returnKeyOf(next), true, true},
		{"a day ago", 24 * time.Hour, returnKeyOf(next), true, true},
		{"long ago", 24*time.Hour + 2*rotationGrace, returnKeyOf(next), false, true},
	} {
		added := []passKey{{next, keyID(next), time.Now().Add(-c.ago)}}
		keys.added.Store(&added)
		if got := keys.ReturnKey(); got != c.signs {
			t.Errorf("rotated %s: another key signs", c.name)
		}
		if old, isNext := keys.HasSigned(url, page, signedBy(first, url, page)), keys.HasSigned(url, page, signedBy(returnKeyOf(next), url, page)); old != c.takesOld || isNext != c.takesN {
			t.Errorf("rotated %s: of the key before %t, of the next %t", c.name, old, isNext)
		}
	}
}

func signedBy(key [ReturnKeySize]byte, room, to string) string {
	return base64.RawURLEncoding.EncodeToString(signReturn(key, room, to))
}
