package room

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/session"
)

// bareRoom is a room without a log.
func bareRoom(s Settings) *Room {
	r := &Room{URL: "https://queue.example.com/r/sale"}
	r.PassKeys = session.NewPassKeys(uuid.New(), ed25519.NewKeyFromSeed(make([]byte, 32)), nil, nil, clock.New(0))
	r.details = newDetails(uuid.New(), nil, "", nil)
	r.details.settings.Store(&storedSettings{Settings: s})
	return r
}

func signedBy(key [session.ReturnKeySize]byte, room, to string) string {
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("proofline-to/v1\n" + room + "\n" + to))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// TestTakes tries to send a visitor to a page that no connector has signed.
func TestTakes(t *testing.T) {
	t.Parallel()
	const (
		first  = "https://shop.example.com/tickets"
		page   = "https://shop.example.com/tickets/7?row=2&seat=a%20b"
		beyond = "https://shop.example.com/out?url=https://evil.example.net/"
		other  = "https://evil.example.net/tickets"
	)
	r := bareRoom(Settings{Targets: []string{first, "https://shop.example.com/"}, SignedReturn: true})
	key := r.PassKeys.ReturnKey()
	sign := func(to string) string { return signedBy(key, r.URL, to) }
	good := sign(page)
	otherRoom := bareRoom(Settings{})
	otherKey := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	otherRoom.PassKeys = session.NewPassKeys(uuid.New(), otherKey, nil, nil, clock.New(0))
	for _, c := range []struct {
		name string
		Wanted
		takes bool
		want  string // empty: refused
	}{
		{"signed", Wanted{page, good}, true, page},
		{"signed, another page", Wanted{beyond, sign(beyond)}, true, beyond},
		{"nothing", Wanted{}, false, first},
		{"a signature of nothing", Wanted{"", sign("")}, false, first},
		{"not signed", Wanted{page, ""}, false, first},
		{"not signed, a page that leads on", Wanted{beyond, ""}, false, first},
		{"not signed, the first target itself", Wanted{first, ""}, false, first},
		{"the signature of another page", Wanted{beyond, good}, false, first},
		{"of another room's key", Wanted{page, signedBy(otherRoom.PassKeys.ReturnKey(), r.URL, page)}, false, first},
		{"of another room", Wanted{page, signedBy(key, r.URL+"2", page)}, false, first},
		{"of a room of the same beginning", Wanted{page, signedBy(key, r.URL+"\n", page)}, false, first},
		{"of the key of nothing", Wanted{page, signedBy([session.ReturnKeySize]byte{}, r.URL, page)}, false, first},
		{"cut", Wanted{page, good[:21]}, false, first},
		{"cut to nothing", Wanted{page, "A"}, false, first},
		{"with padding", Wanted{page, good + "=="}, false, first},
		{"longer", Wanted{page, good + "A"}, false, first},
		{"with a line break", Wanted{page, good[:11] + "\n" + good[11:]}, false, first},
		{"twice", Wanted{page, good + good}, false, first},
		{"with a bit more at its end", Wanted{page, good[:21] + string(good[21]+1)}, false, first},
		{"of the page without its query", Wanted{page, sign("https://shop.example.com/tickets/7")}, false, first},
		{"of the page in another encoding", Wanted{"https://shop.example.com/tickets/%37?row=2&seat=a%20b", good}, false, first},
		{"of the page in capitals", Wanted{"https://shop.example.com/Tickets/7?row=2&seat=a%20b", good}, false, first},
		{"of the page with a slash", Wanted{"https://shop.example.com/tickets/7/?row=2&seat=a%20b", good}, false, first},
		{"signed, and no target", Wanted{other, sign(other)}, false, ""},
		{"signed, with a path that browsers read as another", Wanted{first + "/../out", sign(first + "/../out")}, false, ""},
		{"the same in disguise", Wanted{first + "/%2e%2E/out", sign(first + "/%2e%2E/out")}, false, ""},
		{"with a backslash", Wanted{first + `/..\out`, sign(first + `/..\out`)}, false, ""},
		{"signed, and a script", Wanted{"javascript:alert(1)", sign("javascript:alert(1)")}, false, ""},
		{"not signed, and no target", Wanted{other, ""}, false, ""},
	} {
		u, ok := r.Target(c.Wanted)
		if ok != (c.want != "") || ok && u.String() != c.want || r.Takes(c.Wanted) != c.takes {
			t.Errorf("%s: to %v %t, takes it %t, want %q", c.name, u, ok, r.Takes(c.Wanted), c.want)
		}
	}
	for i := range good {
		changed := []byte(good)
		for changed[i] = 'A'; changed[i] == good[i]; changed[i]++ {
		}
		if r.Takes(Wanted{page, string(changed)}) {
			t.Errorf("character %d of the signature does not matter", i)
		}
	}
}

// TestTakesUnsigned: unless the room requires signatures, only the targets decide.
func TestTakesUnsigned(t *testing.T) {
	t.Parallel()
	r := bareRoom(Settings{Targets: []string{"https://shop.example.com/"}})
	page := "https://shop.example.com/cart"
	for _, sig := range []string{"", "x", signedBy(r.PassKeys.ReturnKey(), r.URL, page)} {
		if u, ok := r.Target(Wanted{page, sig}); !ok || u.String() != page || !r.Takes(Wanted{page, sig}) {
			t.Errorf("signature %q: to %v %t", sig, u, ok)
		}
	}
	if _, ok := r.Target(Wanted{To: "https://evil.example.net/"}); ok || r.Takes(Wanted{To: "https://evil.example.net/"}) {
		t.Error("leads elsewhere")
	}
	if _, ok := bareRoom(Settings{SignedReturn: true}).Target(Wanted{page, "x"}); ok {
		t.Error("no target, and one was found")
	}
}

// FuzzTakes: only the right signature is accepted, and no signature turns another URL into a target.
func FuzzTakes(f *testing.F) {
	const page = "https://shop.example.com/tickets"
	r := bareRoom(Settings{Targets: []string{"https://shop.example.com/first", page}, SignedReturn: true})
	good := signedBy(r.PassKeys.ReturnKey(), r.URL, page)
	for _, seed := range []Wanted{{page, good}, {page, ""}, {page, good + "="}, {page + "?", good}, {"//evil.example.net", good}, {"", good}, {page, strings.ToLower(good)}} {
		f.Add(seed.To, seed.Sig)
	}
	f.Fuzz(func(t *testing.T, to, sig string) {
		w := Wanted{to, sig}
		settings, _ := r.Settings()
		_, isTarget := settings.Target(to)
		if want := isTarget && to != "" && sig == signedBy(r.PassKeys.ReturnKey(), r.URL, to); r.Takes(w) != want {
			t.Errorf("%q with %q: taken %t", to, sig, !want)
		}
		if u, ok := r.Target(w); ok != isTarget || ok && !r.Takes(w) && u.String() != settings.Targets[0] {
			t.Errorf("%q with %q: led to %v %t", to, sig, u, ok)
		}
	})
}
