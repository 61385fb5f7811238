package room

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/session"
)

// quick is a room in which visitors are called at once.
func quick(slug string) Config {
	return Config{Slug: slug, Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 600_000}}
}

// admit lets a visitor join and claim.
func admit(t *testing.T, r *Room) (visitor, session.Pass) {
	t.Helper()
	v := newVisitor(r)
	if _, err := r.Join(t.Context(), v.ticket); err != nil {
		t.Fatal(err)
	}
	p, err := waitClaim(t, r, v)
	if err != nil {
		t.Fatal(err)
	}
	return v, p
}

// enter admits a visitor whose pass the site redeems.
func enter(t *testing.T, r *Room) (visitor, session.Pass) {
	t.Helper()
	v, p := admit(t, r)
	if _, err := r.Sessions.Redeem(t.Context(), p.ID.String(), p.Token, ""); err != nil {
		t.Fatal(err)
	}
	return v, p
}

// pair runs one room on two nodes.
func pair(t *testing.T, c Config) (url string, rooms [2]*Room) {
	t.Helper()
	url = pgtest.URL(t)
	master := newMaster(t)
	masters.Store(url, master)
	rooms[0] = create(t, node(t, url, master), c)
	rooms[1] = get(t, node(t, url, master), c.Slug)
	return url, rooms
}

// masters are the master keys of [pair], by the URL of the database.
var masters sync.Map

// masterOf returns the master key of a database of [pair].
func masterOf(t *testing.T, url string) *keys.MasterKey {
	t.Helper()
	m, _ := masters.Load(url)
	master, ok := m.(*keys.MasterKey)
	if !ok {
		t.Fatal("no such database")
	}
	return master
}

// TestRedeemOnce redeems passes at both nodes many times at once: each pass admits once, and the transcript
// does not record it.
func TestRedeemOnce(t *testing.T) {
	t.Parallel()
	_, rooms := pair(t, quick("redeem"))
	for range 5 {
		_, p := admit(t, rooms[0]) // the other node may not know of the admission yet
		size := rooms[0].Snapshot().Size
		var all sync.WaitGroup
		var in atomic.Int32
		for i := range 20 {
			all.Go(func() {
				s, err := rooms[(i+1)%2].Sessions.Redeem(t.Context(), p.ID.String(), p.Token, "")
				switch {
				case err == nil:
					in.Add(1)
					if s.Pass != p.ID || s.Position == 0 || s.Lane != fairness.General || !s.MaxEnds.After(s.Ends) || (s.Ends.Sub(p.Expires)-(DefaultSession-5*time.Minute)).Abs() > time.Second {
						t.Errorf("session %+v of pass until %v", s, p.Expires)
					}
				case !errors.Is(err, session.ErrPassUsed):
					t.Errorf("redeem: %v, want session.ErrPassUsed", err)
				}
			})
		}
		all.Wait()
		if in.Load() != 1 {
			t.Errorf("one pass was redeemed %d times", in.Load())
		}
		if got := rooms[0].Snapshot().Size; got != size {
			t.Errorf("the transcript grew from %d to %d entries", size, got)
		}
	}
	auditRoom(t, rooms[1])
}

// forge signs a pass with changed claims or a changed header.
func forge(t *testing.T, p session.Pass, method jwt.SigningMethod, key any, change func(header, claims map[string]any)) string {
	t.Helper()
	parts := strings.Split(p.Token, ".")
	decoded := [2]map[string]any{}
	for i := range decoded {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(b, &decoded[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	token := jwt.NewWithClaims(method, jwt.MapClaims(decoded[1]))
	alg := token.Header["alg"]
	maps.Copy(token.Header, decoded[0])
	token.Header["alg"] = alg
	change(token.Header, decoded[1])
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestForgedPasses tries invalid passes with every operation that takes one. Some are signed by the room's
// own key, with false claims.
func TestForgedPasses(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	r, other := create(t, rs, quick("forged")), create(t, rs, quick("foreign"))
	_, p := enter(t, r)
	_, foreign := admit(t, other)
	waiting := newVisitor(r)
	own, stranger := r.keys.Pass, ed25519.NewKeyFromSeed(make([]byte, 32))
	none := func(_, _ map[string]any) {}
	claim := func(name string, value any) func(_, _ map[string]any) {
		return func(_, claims map[string]any) { claims[name] = value }
	}
	if _, err := r.Sessions.Touch(t.Context(), forge(t, p, jwt.SigningMethodEdDSA, own, none)); err != nil {
		t.Fatalf("forged without a change: %v: the rest proves nothing", err)
	}
	public, _ := own.Public().(ed25519.PublicKey)
	signature := strings.LastIndexByte(p.Token, '.') + 1
	texts := map[string]string{
		"nothing":                        "",
		"no token":                       "pass",
		"three dots":                     "...",
		"cut":                            p.Token[:len(p.Token)-1],
		"without signature":              p.Token[:signature],
		"with another's":                 p.Token[:signature] + foreign.Token[strings.LastIndexByte(foreign.Token, '.')+1:],
		"of another room":                foreign.Token,
		"of algorithm none":              forge(t, p, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, none),
		"of the public key as a":         forge(t, p, jwt.SigningMethodHS256, []byte(public), none),
		"of another key":                 forge(t, p, jwt.SigningMethodEdDSA, stranger, none),
		"of an unknown key":              forge(t, p, jwt.SigningMethodEdDSA, stranger, func(h, _ map[string]any) { h["kid"] = "unknown" }),
		"without key id":                 forge(t, p, jwt.SigningMethodEdDSA, own, func(h, _ map[string]any) { delete(h, "kid") }),
		"with a key id no text":          forge(t, p, jwt.SigningMethodEdDSA, own, func(h, _ map[string]any) { h["kid"] = 7 }),
		"that lasts longer":              forge(t, p, jwt.SigningMethodEdDSA, own, claim("exp", p.Expires.Unix()+1)),
		"for another site":               forge(t, p, jwt.SigningMethodEdDSA, own, claim("aud", other.Origin)),
		"from another issuer":            forge(t, p, jwt.SigningMethodEdDSA, own, claim("iss", other.URL)),
		"of another id":                  forge(t, p, jwt.SigningMethodEdDSA, own, claim("jti", foreign.ID.String())),
		"of another position":            forge(t, p, jwt.SigningMethodEdDSA, own, claim("position", 2)),
		"of another lane":                forge(t, p, jwt.SigningMethodEdDSA, own, claim("lane", "fast")),
		"without a subject":              forge(t, p, jwt.SigningMethodEdDSA, own, claim("sub", "")),
		"of a visitor that never joined": forge(t, p, jwt.SigningMethodEdDSA, own, claim("sub", newVisitor(r).ticket.String())),
		"of a visitor not yet admitted":  "",
	}
	if _, err := r.Join(t.Context(), waiting.ticket); err != nil {
		t.Fatal(err)
	}
	texts["of a visitor not yet admitted"] = forge(t, p, jwt.SigningMethodEdDSA, own, claim("sub", waiting.ticket.String()))
	for name, text := range texts {
		if _, err := r.Sessions.Redeem(t.Context(), p.ID.String(), text, ""); !errors.Is(err, session.ErrPass) {
			t.Errorf("redeem a pass %s: %v, want session.ErrPass", name, err)
		}
		if _, err := r.Sessions.Touch(t.Context(), text); !errors.Is(err, session.ErrPass) {
			t.Errorf("touch with a pass %s: %v, want session.ErrPass", name, err)
		}
		if _, err := r.Sessions.Release(t.Context(), text); !errors.Is(err, session.ErrPass) {
			t.Errorf("release with a pass %s: %v, want session.ErrPass", name, err)
		}
	}
	if _, err := r.Sessions.Redeem(t.Context(), foreign.ID.String(), p.Token, ""); !errors.Is(err, session.ErrPassUnknown) {
		t.Errorf("redeem under another id: %v, want session.ErrPassUnknown", err)
	}
	if _, err := r.Sessions.Touch(t.Context(), p.Token); err != nil {
		t.Errorf("after all that the pass itself: %v", err)
	}
}

// TestRedeemTooLate: a pass is no longer redeemed once it has expired, or its
// session was released.
func TestRedeemTooLate(t *testing.T) {
	t.Parallel()
	c := quick("late")
	c.Session = span(time.Hour)
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	r := create(t, rs, c)
	_, p := admit(t, r)
	_, released := admit(t, r)
	if _, err := r.Sessions.Release(t.Context(), released.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Sessions.Redeem(t.Context(), released.ID.String(), released.Token, ""); !errors.Is(err, session.ErrSessionOver) {
		t.Errorf("released: %v, want session.ErrSessionOver", err)
	}
	d.pass(61*time.Minute, rs)
	for name, do := range map[string]func() error{
		"redeem":  func() error { _, err := r.Sessions.Redeem(t.Context(), p.ID.String(), p.Token, ""); return err },
		"touch":   func() error { _, err := r.Sessions.Touch(t.Context(), p.Token); return err },
		"release": func() error { _, err := r.Sessions.Release(t.Context(), p.Token); return err },
	} {
		want := session.ErrSessionOver
		if name == "redeem" {
			want = session.ErrPass
		}
		if err := do(); !errors.Is(err, want) {
			t.Errorf("%s after the end: %v, want %v", name, err, want)
		}
	}
}

// kid returns the id of the key that signed a pass.
func kid(t *testing.T, p session.Pass) string {
	t.Helper()
	token, _, err := jwt.NewParser().ParseUnverified(p.Token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := token.Header["kid"].(string)
	return id
}

func kids(r *Room) (list []string) {
	for _, k := range r.Sessions.PublicKeys() {
		list = append(list, k.ID)
	}
	return list
}

// TestRotate creates new keys on one node. Passes signed with the old ones stay valid on both nodes, new
// passes are signed with the new key, and a ticket's pass stays the same.
func TestRotate(t *testing.T) {
	t.Parallel()
	url, rooms := pair(t, quick("rotate"))
	v, old := admit(t, rooms[0])
	first := kid(t, old)
	second, err := rooms[0].PassKeys.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := rooms[0].Claim(t.Context(), v.ticket, v.secret)
	if err != nil || again.ID != old.ID || !again.Expires.Equal(old.Expires) || kid(t, again) != second || second == first {
		t.Errorf("claimed again: %v, key %s, was %s, want %s", err, kid(t, again), first, second)
	}
	// The other node has not read the key yet, and reads it for this pass.
	if _, err := rooms[1].Sessions.Redeem(t.Context(), again.ID.String(), again.Token, ""); err != nil {
		t.Errorf("a pass of a key that is new here: %v", err)
	}
	if _, err := rooms[1].Sessions.Touch(t.Context(), old.Token); err != nil {
		t.Errorf("a pass of the old key: %v", err)
	}
	if _, err := rooms[0].Sessions.Redeem(t.Context(), again.ID.String(), again.Token, ""); !errors.Is(err, session.ErrPassUsed) {
		t.Errorf("the same pass by the new key: %v, want session.ErrPassUsed", err)
	}
	third, err := rooms[1].PassKeys.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{third, second, first}
	for _, r := range rooms {
		eventually(t, "both nodes publish all keys, and sign with the newest", func() bool {
			p, err := r.Claim(t.Context(), v.ticket, v.secret)
			return err == nil && kid(t, p) == third && slices.Equal(kids(r), want)
		})
	}
	restarted := get(t, node(t, url, masterOf(t, url)), "rotate")
	if !slices.Equal(kids(restarted), want) {
		t.Errorf("after a restart: keys %v, want %v", kids(restarted), want)
	}
	if _, err := restarted.Sessions.Redeem(t.Context(), old.ID.String(), old.Token, ""); !errors.Is(err, session.ErrPassUsed) {
		t.Errorf("redeemed before the restart: %v, want session.ErrPassUsed", err)
	}
}
