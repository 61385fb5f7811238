package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

const (
	testOrigin = "queue.example.com/r/sale"
	testName   = "witness.example.org"
)

var testTime = time.Unix(1679315147, 0)

// testLog is a log. From a given entry on, its entries may differ from those that others see.
type testLog struct {
	t      testing.TB
	signer note.Signer
	vkey   string
	hashes []tlog.Hash // in the layout of tlog.StoredHashes
}

func newLog(t testing.TB, origin string, seed byte, size, forkedAt int) *testLog {
	t.Helper()
	signer, vkey, err := audit.NewSigner(origin, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	l := &testLog{t: t, signer: signer, vkey: vkey}
	for i := range size {
		entry := fmt.Appendf(nil, "entry %d", i)
		if i >= forkedAt {
			entry = fmt.Appendf(nil, "another entry %d", i)
		}
		hashes, err := tlog.StoredHashes(int64(i), entry, l)
		if err != nil {
			t.Fatal(err)
		}
		l.hashes = append(l.hashes, hashes...)
	}
	return l
}

// ReadHashes implements [tlog.HashReader].
func (l *testLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found[i] = l.hashes[index]
	}
	return found, nil
}

func (l *testLog) checkpoint(size int) audit.Checkpoint {
	l.t.Helper()
	root, err := tlog.TreeHash(int64(size), l)
	if err != nil {
		l.t.Fatal(err)
	}
	if size == 0 {
		root = (&audit.Tree{}).Root()
	}
	return audit.Checkpoint{Origin: l.signer.Name(), Size: uint64(size), Root: root}
}

func (l *testLog) sign(text string) []byte {
	l.t.Helper()
	signed, err := note.Sign(&note.Note{Text: text}, l.signer)
	if err != nil {
		l.t.Fatal(err)
	}
	return signed
}

func (l *testLog) signed(size int) []byte { return l.sign(l.checkpoint(size).Marshal()) }

func (l *testLog) proof(old, size int) []audit.Hash {
	l.t.Helper()
	if old == 0 {
		return nil
	}
	proof, err := tlog.ProveTree(int64(size), int64(old), l)
	if err != nil {
		l.t.Fatal(err)
	}
	return proof
}

func (l *testLog) request(old, size int) Request {
	return Request{uint64(old), l.proof(old, size), l.signed(size)}
}

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func testKey(t testing.TB, name string, seed byte) Key {
	t.Helper()
	k, err := NewKey(name, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// house is a witness with its store and clock.
type house struct {
	*Witness
	clock  *clock
	dir    string
	logged *bytes.Buffer
}

func newHouse(t testing.TB, logs ...*testLog) *house {
	t.Helper()
	return open(t, t.TempDir(), &clock{now: testTime}, logs...)
}

func open(t testing.TB, dir string, c *clock, logs ...*testLog) *house {
	t.Helper()
	store, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // may be closed already
	logged := &bytes.Buffer{}
	w := New(testKey(t, testName, 9), store, c.Now, slog.New(slog.NewTextHandler(logged, nil)))
	vkeys := []string{}
	for _, l := range logs {
		vkeys = append(vkeys, l.vkey)
	}
	followed, err := NewLogs(vkeys...)
	if err != nil {
		t.Fatal(err)
	}
	w.Follow(followed)
	return &house{w, c, dir, logged}
}

// again opens the store again, as after a restart.
func (h *house) again(t testing.TB, logs ...*testLog) *house {
	t.Helper()
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, h.dir, h.clock, logs...)
}

// cosigned fails the test unless the witness cosigns.
func (h *house) cosigned(t testing.TB, r Request) audit.Cosignature {
	t.Helper()
	c, err := h.AddCheckpoint(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(r.Checkpoint), "\n\n")
	if err := h.Key().VerifyCosignature(text+"\n", c); err != nil {
		t.Fatal(err)
	}
	return c
}

// refused fails the test unless the witness returns this error.
func (h *house) refused(t testing.TB, r Request, want error) {
	t.Helper()
	c, err := h.AddCheckpoint(t.Context(), r)
	if !errors.Is(err, want) || c != (audit.Cosignature{}) {
		t.Errorf("cosigned %x, error %v, want %v", c, err, want)
	}
}

func (h *house) conflicts(t testing.TB, r Request, size uint64) {
	t.Helper()
	c, err := h.AddCheckpoint(t.Context(), r)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.Size != size || c != (audit.Cosignature{}) {
		t.Errorf("cosigned %x, error %v, want a conflict with size %d", c, err, size)
	}
}

// kept returns the names of the stored evidence files.
func (h *house) kept(t testing.TB, origin string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(h.dir, "evidence", LogID(origin), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

func TestGrowth(t *testing.T) {
	l := newLog(t, testOrigin, 1, 40, 40)
	h := newHouse(t, l)
	size := 0
	for _, next := range []int{0, 0, 1, 1, 2, 7, 8, 8, 9, 40} {
		h.clock.add(time.Second)
		c := h.cosigned(t, l.request(size, next))
		if c.Time() != h.clock.Now().Unix() {
			t.Errorf("size %d: time %d", next, c.Time())
		}
		size = next
		h = h.again(t, l)
	}
	if kept := h.kept(t, testOrigin); len(kept) > 0 {
		t.Errorf("evidence against an honest log: %v", kept)
	}
}

// Every old size with every new one, in each state that the witness may be in.
func TestEverySize(t *testing.T) {
	most := 6
	if testing.Short() {
		most = 3
	}
	l := newLog(t, testOrigin, 1, most, most)
	for has := range most + 1 {
		for old := range most + 1 {
			for size := range most + 1 {
				h := newHouse(t, l)
				if has > 0 {
					h.cosigned(t, l.request(0, has))
				}
				r := Request{Old: uint64(old), Checkpoint: l.signed(size)}
				if old <= size {
					r.Proof = l.proof(old, size)
				}
				switch {
				case old > size:
					h.refused(t, r, ErrMalformed)
				case old != has:
					h.conflicts(t, r, uint64(has))
				default:
					h.cosigned(t, r)
				}
			}
		}
	}
}

func TestAttacksOnTheWitness(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	forked := newLog(t, testOrigin, 1, 30, 5)
	stranger := newLog(t, testOrigin, 2, 30, 30)
	other := newLog(t, "queue.example.com/r/other", 1, 30, 30)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 10))
	state, err := h.store.Latest(testOrigin)
	if err != nil {
		t.Fatal(err)
	}

	emptyRoot := audit.Checkpoint{Origin: testOrigin, Root: l.checkpoint(1).Root}
	badSignature := bytes.Clone(l.signed(12))
	badSignature[len(badSignature)-10] ^= 1
	bothSigned := append(stranger.signed(12), bytes.SplitAfter(l.signed(12), []byte("\n\n"))[1]...)
	for _, c := range []struct {
		name string
		r    Request
		want error
	}{
		{"a log that is not followed", other.request(0, 12), ErrUnknownLog},
		{"unknown key", stranger.request(10, 12), ErrUnsigned},
		{"forged signature", Request{10, l.proof(10, 12), badSignature}, ErrUnsigned},
		{"text changed after signing", Request{10, l.proof(10, 12), bytes.Replace(l.signed(12), []byte("\n12\n"), []byte("\n13\n"), 1)}, ErrUnsigned},
		{"another history", forked.request(10, 12), ErrInconsistent},
		{"another history of the same size", Request{10, nil, forked.signed(10)}, ErrInconsistent},
		{"no proof", Request{10, nil, l.signed(12)}, ErrInconsistent},
		{"proof from another size", Request{10, l.proof(9, 12), l.signed(12)}, ErrInconsistent},
		{"proof to another size", Request{10, l.proof(10, 13), l.signed(12)}, ErrInconsistent},
		{"proof of one hash more", Request{10, append(l.proof(10, 12), audit.Hash{}), l.signed(12)}, ErrInconsistent},
		{"proof between equal sizes", Request{10, []audit.Hash{{}}, l.signed(10)}, ErrInconsistent},
		{"old size larger than the new", Request{12, nil, l.signed(10)}, ErrMalformed},
		{"not a checkpoint", Request{10, nil, l.sign("text\n")}, ErrMalformed},
		{"empty line in the text", Request{10, nil, l.sign(l.checkpoint(10).Marshal() + "\nmore\n")}, ErrMalformed},
		{"no signature", Request{10, nil, []byte(l.checkpoint(10).Marshal())}, ErrMalformed},
		{"no signature line", Request{10, nil, []byte(l.checkpoint(10).Marshal() + "\n")}, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) { h.refused(t, c.r, c.want) })
	}
	t.Run("rollback", func(t *testing.T) { h.conflicts(t, l.request(0, 9), 10) })
	t.Run("rollback to nothing", func(t *testing.T) { h.conflicts(t, l.request(0, 0), 10) })
	t.Run("start again", func(t *testing.T) { h.conflicts(t, forked.request(0, 12), 10) })
	t.Run("root of the empty tree", func(t *testing.T) {
		fresh := newHouse(t, l)
		fresh.refused(t, Request{0, nil, l.sign(emptyRoot.Marshal())}, ErrInconsistent)
		fresh.refused(t, Request{0, []audit.Hash{{}}, l.signed(3)}, ErrInconsistent)
	})
	if now, err := h.store.Latest(testOrigin); err != nil || !bytes.Equal(now, state) {
		t.Errorf("an attack changed the state to %q, %v", now, err)
	}
	// One signature by the log's key is enough. Those of unknown keys are not kept.
	h.cosigned(t, Request{10, l.proof(10, 12), bothSigned})
	if now, err := h.store.Latest(testOrigin); err != nil || bytes.Count(now, []byte("— ")) != 2 {
		t.Errorf("state %q, %v", now, err)
	}
}

func TestForkIsKept(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	forked := newLog(t, testOrigin, 1, 30, 5)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 10))

	h.conflicts(t, Request{0, nil, forked.signed(10)}, 10) // the sizes alone would not show the fork
	h.refused(t, Request{10, nil, forked.signed(10)}, ErrInconsistent)
	root := forked.checkpoint(10).Root
	name := fmt.Sprintf("fork-10-%x", root[:8])
	if got, want := h.kept(t, testOrigin), []string{name + ".kept", name + ".offered"}; !slices.Equal(got, want) {
		t.Fatalf("kept %q, want %q", got, want)
	}
	verifier, err := note.NewVerifier(l.vkey)
	if err != nil {
		t.Fatal(err)
	}
	heads := []audit.Checkpoint{}
	for _, suffix := range []string{".kept", ".offered"} {
		b, err := os.ReadFile(filepath.Join(h.dir, "evidence", LogID(testOrigin), name+suffix))
		if err != nil {
			t.Fatal(err)
		}
		head, _, err := audit.OpenCheckpoint(b, verifier)
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, head)
	}
	if heads[0] != l.checkpoint(10) || heads[1] != forked.checkpoint(10) {
		t.Errorf("evidence of %v", heads)
	}
	if got := strings.Count(h.logged.String(), "FORK"); got != 1 {
		t.Errorf("logged %d times: %s", got, h.logged)
	}

	h.refused(t, forked.request(10, 20), ErrInconsistent)
	if got := h.kept(t, testOrigin); len(got) != 4 || !strings.HasPrefix(got[2], "unproven-20-") {
		t.Errorf("kept %q", got)
	}
	h.cosigned(t, l.request(10, 20)) // other logs are not affected
}

// Any client can send a wrong proof, so wrong proofs must not fill the disk.
func TestEvidenceIsBounded(t *testing.T) {
	l := newLog(t, testOrigin, 1, 100, 100)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 10))
	for size := 11; size <= 100; size++ {
		h.refused(t, Request{10, nil, l.signed(size)}, ErrInconsistent)
	}
	if got := len(h.kept(t, testOrigin)); got != 2*maxKept {
		t.Errorf("%d files", got)
	}
	h.refused(t, Request{10, nil, newLog(t, testOrigin, 1, 10, 3).signed(10)}, ErrInconsistent)
	if got := len(h.kept(t, testOrigin)); got != 2*maxKept+2 {
		t.Errorf("%d files: no room for a fork", got)
	}
}

func TestClock(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	h := newHouse(t, l)
	first := h.cosigned(t, l.request(0, 10))
	if again := h.cosigned(t, l.request(10, 10)); again != first {
		t.Error("cosigned twice in a second")
	}
	h.clock.add(time.Second)
	if again := h.cosigned(t, l.request(10, 10)); again.Time() != first.Time()+1 {
		t.Errorf("time %d after %d", again.Time(), first.Time())
	}
	h.clock.add(-MaxStepBack) // and it stays at the latest time
	if c := h.cosigned(t, l.request(10, 11)); c.Time() != first.Time()+1 {
		t.Errorf("time %d after %d", c.Time(), first.Time()+1)
	}
	h.clock.add(-time.Second)
	h.refused(t, l.request(11, 12), ErrClock)
	h.refused(t, l.request(11, 12), ErrUnavailable)
	h = h.again(t, l)
	h.refused(t, l.request(11, 12), ErrClock)
	h.clock.add(time.Hour)
	h.cosigned(t, l.request(11, 12))

	unset := newHouse(t, l)
	unset.clock.now = time.Unix(0, 0)
	unset.refused(t, l.request(0, 10), ErrClock)
}

// Extension lines are signed like the rest, and have no meaning.
func TestExtensionLines(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	h := newHouse(t, l)
	plain := h.cosigned(t, l.request(0, 10))
	extended := h.cosigned(t, Request{10, nil, l.sign(l.checkpoint(10).Marshal() + "extension\n")})
	if plain == extended {
		t.Error("the extension line is not signed")
	}
	h.cosigned(t, l.request(10, 12))
	if kept := h.kept(t, testOrigin); len(kept) > 0 {
		t.Errorf("kept %q", kept)
	}
}

func TestFollow(t *testing.T) {
	l := newLog(t, testOrigin, 1, 30, 30)
	renewed := newLog(t, testOrigin, 2, 30, 30)
	h := newHouse(t, l, renewed)
	h.cosigned(t, l.request(0, 10))
	h.cosigned(t, renewed.request(10, 12)) // another key of the same log, with the same history
	h.Follow(Logs{})
	h.refused(t, l.request(12, 13), ErrUnknownLog)
	logs, err := NewLogs(l.vkey, l.vkey)
	if err != nil || len(logs) != 1 || len(logs[testOrigin]) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	h.Follow(logs)
	h.refused(t, renewed.request(12, 13), ErrUnsigned)
	h.conflicts(t, l.request(0, 13), 12) // nothing is forgotten
	h.cosigned(t, l.request(12, 13))
	for _, vkey := range []string{"", "nonsense", h.Key().String(), l.vkey + "x"} {
		if _, err := NewLogs(vkey); !errors.Is(err, audit.ErrKey) {
			t.Errorf("%q: %v", vkey, err)
		}
	}
}

// Each goroutine tries to grow the log. The resulting cosignatures must form one history, in any order.
func TestConcurrent(t *testing.T) {
	const most, workers = 60, 8
	l := newLog(t, testOrigin, 1, most, most)
	forked := newLog(t, testOrigin, 1, most, 1)
	h := newHouse(t, l)
	h.cosigned(t, l.request(0, 2)) // the witness accepts the first history that it sees
	type step struct{ old, size uint64 }
	var mu sync.Mutex
	steps := []step{}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for old := 2; old < most; {
				size := old + 1 + random.IntN(min(4, most-old))
				from := l
				if random.IntN(4) == 0 {
					from = forked
				}
				_, err := h.AddCheckpoint(context.Background(), from.request(old, size))
				var conflict *ConflictError
				switch {
				case err == nil:
					if from == forked {
						t.Error("cosigned another history")
					}
					mu.Lock()
					steps = append(steps, step{uint64(old), uint64(size)})
					mu.Unlock()
					old = size
				case errors.As(err, &conflict):
					old = int(conflict.Size)
				case !errors.Is(err, ErrInconsistent) || from != forked:
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	slices.SortFunc(steps, func(a, b step) int { return int(a.size) - int(b.size) })
	at := uint64(2)
	for _, s := range steps {
		if s.old != at {
			t.Errorf("cosigned from %d to %d when %d was cosigned", s.old, s.size, at)
		}
		at = s.size
	}
	if at != most {
		t.Errorf("ended at %d", at)
	}
}

// A request does not wait forever for the one before it.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(testKey(t, testName, 9), nil, time.Now, slog.New(slog.DiscardHandler))
		done, err := w.turn(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.turn(t.Context(), "b"); err != nil {
			t.Errorf("another log: %v", err)
		}
		began := time.Now()
		if _, err := w.turn(t.Context(), "a"); !errors.Is(err, ErrUnavailable) || time.Since(began) != maxWait {
			t.Errorf("waited %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.turn(ctx, "a"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("gone client: %v", err)
		}
		done()
		if _, err := w.turn(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

func TestKey(t *testing.T) {
	k := testKey(t, testName, 9)
	text := k.Marshal()
	got, err := ParseKey(text)
	if err != nil || got.Marshal() != text || got.Witness != k.Witness {
		t.Errorf("%v, %v", got, err)
	}
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), fmt.Sprintf("%v", []Key{k})} {
		if strings.Trim(shown, "[]") != k.Witness.String() {
			t.Errorf("printed %q", shown)
		}
	}
	note01 := strings.Replace(text, "+BAkJ", "+AQkJ", 1)
	for _, bad := range []string{"", k.String(), text[1:], text + "=", text[:len(text)-4], strings.Replace(text, testName, testName+".net", 1), note01, strings.ToUpper(text)} {
		if _, err := ParseKey(bad); bad == text || !errors.Is(err, audit.ErrKey) {
			t.Errorf("%q: %v", bad, err)
		} else if strings.Contains(err.Error(), "CQkJ") {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := NewKey("a b", make([]byte, 32)); !errors.Is(err, audit.ErrKey) {
		t.Error(err)
	}
	if _, err := NewKey(testName, make([]byte, 31)); !errors.Is(err, audit.ErrKey) {
		t.Error(err)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(testKey(f, testName, 9).Marshal())
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseKey(text); err == nil && k.Marshal() != text {
			t.Errorf("%q", text)
		}
	})
}
