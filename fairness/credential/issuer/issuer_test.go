package issuer

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cloudflare/circl/blindsign/blindrsa"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/fairness/credential"
)

var secret = bytes.Repeat([]byte{7}, SecretSize)

func openIssuer(t testing.TB, dir string) (*Issuer, *Store) {
	t.Helper()
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	i, err := New(secret, s)
	if err != nil {
		t.Fatal(err)
	}
	return i, s
}

func room(name string) [32]byte { return sha256.Sum256([]byte(name)) }

func club() *Offer {
	return &Offer{Name: "derby", Method: "club", Room: room("derby"), Lanes: []string{"general"}, Limit: 3}
}

func ask(n byte) Request { return Request{Lane: "general", Ticket: [16]byte{n}} }

func verify(t *testing.T, i *Issuer, o *Offer, r Request, in Issued) error {
	t.Helper()
	v, err := credential.NewVerifier(i.Method(o))
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(credential.Subject{Room: o.Room, Lane: r.Lane, Ticket: r.Ticket},
		credential.Credential{Method: o.Method, Nullifier: in.Nullifier, Evidence: in.Evidence})
}

func TestSigned(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	o := club()
	first, err := i.Issue(o, "anna", ask(1))
	if err != nil || first.Again {
		t.Fatal(first, err)
	}
	if err := verify(t, i, o, ask(1), first); err != nil {
		t.Error(err)
	}
	if err := verify(t, i, o, ask(2), first); !errors.Is(err, credential.ErrSignature) {
		t.Errorf("for another ticket: %v", err)
	}
	second, err := i.Issue(o, "anna", ask(2))
	if err != nil || !second.Again || !bytes.Equal(second.Nullifier, first.Nullifier) {
		t.Error("an account has a second nullifier", second, err)
	}
	other, err := i.Issue(o, "berta", ask(2))
	if err != nil || bytes.Equal(other.Nullifier, first.Nullifier) {
		t.Error("two accounts share a nullifier", err)
	}
	elsewhere := club()
	elsewhere.Room = room("final")
	third, err := i.Issue(elsewhere, "anna", ask(1))
	if err != nil || bytes.Equal(third.Nullifier, first.Nullifier) || third.Again {
		t.Error("two rooms share a nullifier", err)
	}
	if _, err := i.Issue(o, "carla", Request{Lane: "press"}); !errors.Is(err, ErrLane) {
		t.Error(err)
	}
}

// TestPurpose: what is signed for one purpose is not valid for another one.
func TestPurpose(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	accounts, puzzles := club(), club()
	puzzles.Purpose = "puzzle"
	for _, test := range []struct{ signs, verifies *Offer }{
		{accounts, accounts}, {puzzles, puzzles}, {accounts, puzzles}, {puzzles, accounts},
	} {
		issued, err := i.Issue(test.signs, "anna", ask(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, i, test.verifies, ask(1), issued); (err == nil) != (test.signs == test.verifies) {
			t.Errorf("signed for %q, verified for %q: %v", test.signs.Purpose, test.verifies.Purpose, err)
		}
	}
}

func TestOnceAndLimit(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	o := club()
	o.Once = true
	first, err := i.Issue(o, "code 1", ask(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Issue(o, "code 1", ask(2)); !errors.Is(err, ErrUsed) {
		t.Errorf("a second place with one code: %v", err)
	}
	again, err := i.Issue(o, "code 1", ask(1))
	if err != nil || !again.Again || !bytes.Equal(again.Evidence, first.Evidence) {
		t.Error("the same request again has another result", err)
	}
	for n := range 2 {
		if _, err := i.Issue(o, fmt.Sprint("more ", n), ask(9)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.Issue(o, "one too many", ask(9)); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if _, err := i.Issue(o, "code 1", ask(1)); err != nil {
		t.Errorf("at the limit, a code that has its credential: %v", err)
	}
}

func TestBlind(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	key, err := rsa.GenerateKey(rand.Reader, ModulusBits)
	if err != nil {
		t.Fatal(err)
	}
	o := &Offer{Name: "phone", Method: "phone", Room: room("derby"), Key: key}
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	request := ask(1)
	subject := credential.Subject{Room: o.Room, Lane: request.Lane, Ticket: request.Ticket}
	blinded, state, err := client.Blind(rand.Reader, subject.AppendMessage(nil, o.Method, nil))
	if err != nil {
		t.Fatal(err)
	}
	issued, err := i.Issue(o, "anna", Request{Blinded: blinded})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := client.Finalize(state, issued.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, i, o, request, Issued{Evidence: signature}); err != nil {
		t.Error(err)
	}
	if again, err := i.Issue(o, "anna", Request{Blinded: blinded}); err != nil || !bytes.Equal(again.Evidence, issued.Evidence) {
		t.Errorf("the same request again: %v", err)
	}
	other, _, _ := client.Blind(rand.Reader, subject.AppendMessage(nil, o.Method, nil))
	if _, err := i.Issue(o, "anna", Request{Blinded: other}); !errors.Is(err, ErrUsed) {
		t.Errorf("a second blind signature: %v", err)
	}
	for _, bad := range [][]byte{nil, blinded[1:], append([]byte{0}, blinded...), bytes.Repeat([]byte{255}, len(blinded))} {
		if _, err := i.Issue(o, "berta", Request{Blinded: bad}); !errors.Is(err, ErrBlinded) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
}

// TestConcurrent has many requests use one code for different places: one wins.
func TestConcurrent(t *testing.T) {
	i, s := openIssuer(t, t.TempDir())
	o := club()
	o.Once, o.Limit = true, 0
	for round := range 20 {
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				switch _, err := i.Issue(o, fmt.Sprint("code ", round), ask(byte(n))); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ErrUsed):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Errorf("%d won and %d lost", won.Load(), lost.Load())
		}
	}
	if n, err := s.count(o); n != 20 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
}

// TestRecordIsDurableFirst refuses to issue what it could not write, until the file is read again.
func TestRecordIsDurableFirst(t *testing.T) {
	dir := t.TempDir()
	i, s := openIssuer(t, dir)
	o := club()
	o.Once = true
	if _, err := i.Issue(o, "a", ask(1)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk full")
	l, err := s.ledger(o)
	if err != nil {
		t.Fatal(err)
	}
	set := func(sync func(*os.File) error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sync = sync
	}
	set(func(*os.File) error { return broken })
	for range 2 {
		if _, err := i.Issue(o, "b", ask(2)); !errors.Is(err, broken) {
			t.Errorf("issued without a record: %v", err)
		}
	}
	set((*os.File).Sync)
	if _, err := i.Issue(o, "a", ask(1)); !errors.Is(err, broken) {
		t.Errorf("after a failure: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	i, _ = openIssuer(t, dir)
	if _, err := i.Issue(o, "a", ask(3)); !errors.Is(err, ErrUsed) {
		t.Error(err)
	}
	if _, err := i.Issue(o, "b", ask(2)); err != nil {
		t.Errorf("the request that failed, again: %v", err)
	}
}

// TestCrash cuts the file at every byte: what was answered stays, the rest is as if it had not been asked.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	i, s := openIssuer(t, dir)
	o := club()
	o.Once = true
	for n := range 2 {
		if _, err := i.Issue(o, fmt.Sprint(n), ask(byte(n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("derby-%x.log", o.Room[:8])
	text, err := os.ReadFile(filepath.Join(dir, "issued", name))
	if err != nil || len(text) != 2*recordSize {
		t.Fatal(len(text), err)
	}
	for cut := recordSize; cut < len(text); cut++ {
		crashed := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(crashed, "issued"), 0o700),
			os.WriteFile(filepath.Join(crashed, "issued", name), text[:cut], 0o600)); err != nil {
			t.Fatal(err)
		}
		i, s := openIssuer(t, crashed)
		if _, err := i.Issue(o, "0", ask(5)); !errors.Is(err, ErrUsed) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if in, err := i.Issue(o, "1", ask(5)); err != nil || in.Again {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		i, _ = openIssuer(t, crashed)
		if _, err := i.Issue(o, "1", ask(6)); !errors.Is(err, ErrUsed) {
			t.Errorf("cut at %d, opened again: %v", cut, err)
		}
	}
}

func TestDamagedStore(t *testing.T) {
	good := string(appendRecord(nil, [hashSize]byte{1}, [hashSize]byte{2}))
	for _, text := range []string{"\n", "x\n", good[:40] + "\n" + good, strings.ToUpper(strings.Replace(good, "0", "a", 1)), good + good[1:]} {
		dir := t.TempDir()
		i, _ := openIssuer(t, dir)
		o := club()
		if err := os.WriteFile(filepath.Join(dir, "issued", fmt.Sprintf("derby-%x.log", o.Room[:8])), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Issue(o, "a", ask(1)); !errors.Is(err, ErrStore) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestStoreIsLocked(t *testing.T) {
	dir := t.TempDir()
	_, s := openIssuer(t, dir)
	if _, err := OpenStore(dir); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openIssuer(t, dir)
}

// TestNoAccountIsStored looks for accounts in all files.
func TestNoAccountIsStored(t *testing.T) {
	dir := t.TempDir()
	i, _ := openIssuer(t, dir)
	l, err := i.NewList("members", false, "number")
	if err != nil || !l.Add("anna-4711") {
		t.Fatal(err)
	}
	account, _ := l.Account("anna-4711")
	if _, err := i.Issue(club(), account, ask(0xee)); err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if _, err := l.WriteTo(&list); err != nil {
		t.Fatal(err)
	}
	files := []string{list.String()}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, string(text))
		return err
	})
	if err != nil || len(files) != 3 {
		t.Fatal(len(files), err)
	}
	for _, text := range files {
		if strings.Contains(strings.ToLower(text), "anna") || strings.Contains(text, "4711") || strings.Contains(text, "ee000000") {
			t.Errorf("an account or a ticket in %q", text)
		}
	}
}

func TestCount(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	o := club()
	for n := range 2 {
		if _, err := i.Issue(o, fmt.Sprint(n), ask(1)); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := i.Count("members.example.org", []*Offer{o}, 1800000000000)
	if err != nil {
		t.Fatal(err)
	}
	key, err := i.VerifierKey("members.example.org")
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(key)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(signed, note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("proofline/issued/v1\ntime 1800000000000\nderby club %x 2 3\n", o.Room); opened.Text != want {
		t.Errorf("%q, want %q", opened.Text, want)
	}
}

func TestLists(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	l, err := i.NewList("club", false, "number", "birthday")
	if err != nil {
		t.Fatal(err)
	}
	if !l.Add("FC-0815 ol", "1990-01-02") || l.Add("fc 0815 01", "1990/01/02") || l.Add("1", "") || l.Len() != 1 {
		t.Error("typing a value in another way makes another account", l.Len())
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	again, err := i.ReadList("club", bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Account("Fc-081501", "19900102"); !ok {
		t.Error("a member is not known")
	}
	for _, values := range [][]string{{"FC-0815 ol"}, {"FC-0815 ol", "1990-01-03"}, {"FC-0815 ol1990", "-01-02"}, {"", ""}} {
		if _, ok := again.Account(values...); ok {
			t.Errorf("%q is a member", values)
		}
	}
	if _, err := i.ReadList("other", bytes.NewReader(text.Bytes())); !errors.Is(err, ErrList) {
		t.Errorf("under another name: %v", err)
	}
	foreign, _ := New(bytes.Repeat([]byte{8}, SecretSize), nil)
	if _, err := foreign.ReadList("club", bytes.NewReader(text.Bytes())); !errors.Is(err, ErrList) {
		t.Errorf("with another secret: %v", err)
	}
	for _, fields := range [][]string{nil, {""}, {"a", "a"}, {"a,b"}, {"a\n"}, {"a", "b", "c", "d", "e"}} {
		if _, err := i.NewList("x", false, fields...); !errors.Is(err, ErrList) && len(fields) != 1 {
			t.Errorf("fields %q: %v", fields, err)
		}
	}
}

func TestNormalAddress(t *testing.T) {
	for text, want := range map[string]string{
		"Anna@Example.ORG": "anna@example.org", " anna+news@example.org ": "anna@example.org", "a.n.na@gmail.com": "anna@gmail.com",
		"an.na+x@googlemail.com": "anna@gmail.com", "a.b@example.org": "a.b@example.org", "x@b\u00fccher.example": "x@xn--bcher-kva.example",
		"anna": "", "anna@localhost": "", "+x@example.org": "", "Anna <anna@example.org>": "", "a@b.org, c@d.org": "",
		strings.Repeat("a", 250) + "@example.org": "", `"a@b"@example.org`: "", `"a b"@example.org`: "",
	} {
		got, ok := NormalAddress(text)
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzNormal(f *testing.F) {
	f.Add("FC-0815")
	f.Add("anna+x@b\u00fccher.example")
	f.Fuzz(func(t *testing.T, text string) {
		if address, ok := NormalAddress(text); ok {
			if again, ok := NormalAddress(address); !ok || again != address {
				t.Errorf("%q becomes %q and then %q", text, address, again)
			}
		}
		if strings.Contains(normal(text), unit) {
			t.Errorf("%q has a separator", text)
		}
	})
}

func TestCodes(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	l, err := i.NewList("early", true, "code")
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		code := NewCode()
		if len(code) != 19 || !l.Add(code) {
			t.Fatalf("code %q", code)
		}
		typed := strings.ToLower(strings.NewReplacer("-", " ", "0", "o", "1", "l").Replace(code))
		if _, ok := l.Account(typed); !ok {
			t.Errorf("%q is not accepted for %q", typed, code)
		}
	}
}

func FuzzReadList(f *testing.F) {
	i, err := New(secret, nil)
	if err != nil {
		f.Fatal(err)
	}
	l, _ := i.NewList("club", true, "code")
	l.NewBatch(1)
	l.Add("0123-4567")
	var text bytes.Buffer
	_, _ = l.WriteTo(&text)
	f.Add(text.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := i.ReadList("club", bytes.NewReader(data))
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		_, _ = l.WriteTo(&once)
		again, err := i.ReadList("club", bytes.NewReader(once.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = again.WriteTo(&twice)
		if fmt.Sprint(again.made) != fmt.Sprint(l.made) {
			t.Errorf("batches %v are written as %v", l.made, again.made)
		}
		if !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Errorf("%q is written as %q", once.Bytes(), twice.Bytes())
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, [hashSize]byte{1}, [hashSize]byte{2}))
	f.Fuzz(func(t *testing.T, line []byte) {
		if account, asked, ok := parseRecord(line); ok && !bytes.Equal(appendRecord(nil, account, asked), line) {
			t.Errorf("%q", line)
		}
	})
}

func BenchmarkIssue(b *testing.B) {
	i, _ := openIssuer(b, b.TempDir())
	o := club()
	o.Limit = 0
	var n atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := i.Issue(o, fmt.Sprint(n.Add(1)), ask(1)); err != nil {
				b.Error(err)
			}
		}
	})
}
