package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential/issued"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/counted"
)

// countedRoom writes a room in which two tickets showed club, and returns its directory and the hash of its entry.
func countedRoom(t *testing.T) (dir string, entry [sha256.Size]byte) {
	t.Helper()
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	policy, issuers := keys.Door()
	room := roomtest.Open(keys, policy)
	room.WorkRound()
	for account := range 2 {
		room.JoinShowing(room.State().Now(), "members", issuers, account, "club")
	}
	if room.Err() != nil {
		t.Fatal(room.Err())
	}
	files, err := roomtest.Publish(keys, room.Entries())
	dir = t.TempDir()
	if err == nil {
		err = files.Write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, sha256.Sum256(room.Entries()[0])
}

// clubKey is the key of the test issuer of club.
func clubKey() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("issuer club"))
	return ed25519.NewKeyFromSeed(seed[:])
}

func TestIssued(t *testing.T) {
	t.Parallel()
	dir, entry := countedRoom(t)
	var served []byte
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/issued" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	t.Cleanup(site.Close)
	sign := func(key ed25519.PrivateKey, accounts uint64, room [sha256.Size]byte) {
		t.Helper()
		c := issued.Count{By: "club.example.org", Millis: 1_800_000_000_000,
			Offers: []issued.Offer{{Name: "derby", Method: "club", Room: room, Accounts: accounts}}}
		var err error
		if served, err = c.Sign(key); err != nil {
			t.Fatal(err)
		}
	}
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	otherKey, err := issued.VerifierKey("club.example.org", other.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	audit := func(args ...string) (string, int) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"audit", dir, "--no-keep"}, args...), &stdout, &stderr, func(string) string { return "" })
		return strings.Join(strings.Fields(stdout.String()+stderr.String()), " "), code
	}
	for _, c := range []struct {
		what     string
		key      ed25519.PrivateKey
		accounts uint64
		room     [sha256.Size]byte
		more     string
		code     int
		want     string
	}{
		{"as many", clubKey(), 2, entry, "", exitVerified, "2 accounts had got a credential for club, and 2 tickets showed one. The count is its word"},
		{"more", clubKey(), 9, entry, "", exitVerified, "at 2027-01-15 08:00:00 UTC that 9 accounts had got"},
		{"fewer", clubKey(), 1, entry, "", exitFailed, "issuer More tickets showed club than its issuer counts: 2 and 1."},
		{"none", clubKey(), 0, entry, "", exitFailed, "that no account had got a credential for club, and 2 tickets showed one. So the issuer signs more than it counts"},
		{"another room", clubKey(), 2, sha256.Sum256(nil), "", exitUnreadable, "the issuer counts no credentials of this room"},
		{"another key", other, 2, entry, "", exitUnreadable, "signed with none of the keys"},
		// A key that the user names vouches for no method whose key the policy names.
		{"a key of the user", other, 2, entry, otherKey, exitUnreadable, "the issuer counts no credentials of this room"},
	} {
		sign(c.key, c.accounts, c.room)
		args := []string{"--issued", site.URL + "/issued"}
		if c.more != "" {
			args = append(args, "--issuer-key", "issued "+c.more)
		}
		if text, code := audit(args...); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.what, code, c.code, c.want, text)
		}
	}

	sign(clubKey(), 1, entry)
	file, page := filepath.Join(t.TempDir(), "issued"), filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, served, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, ignored bytes.Buffer
	code := run(t.Context(), []string{"audit", dir, "--no-keep", "--json", "--html", page, "--issued", file}, &out, &ignored, func(string) string { return "" })
	var found struct {
		OK     bool             `json:"ok"`
		Issued []counted.Method `json:"issued"`
	}
	err = json.Unmarshal(out.Bytes(), &found)
	if want := (counted.Method{By: "club.example.org", Method: "club", Accounts: 1, Shown: 2, Millis: 1_800_000_000_000}); err != nil ||
		code != exitFailed || !found.OK || len(found.Issued) != 1 || found.Issued[0] != want {
		t.Errorf("exit code %d, %+v, %v", code, found, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "1 account had got a credential for club, and 2 tickets showed one. So the issuer") {
		t.Errorf("the page does not say it, %v", err)
	}
	for _, args := range [][]string{{"--issued", site.URL + "/nothing"}, {"--issued", file + ".none"}} {
		if text, code := audit(args...); code != exitUnreadable {
			t.Errorf("%q: exit code %d\n%s", args, code, text)
		}
	}
	if text, code := audit("--issued", file, "--issuer-key", "club+1+x"); code != exitUsage || !strings.Contains(text, "is not an issuer's key") {
		t.Errorf("a malformed key: exit code %d\n%s", code, text)
	}
}
