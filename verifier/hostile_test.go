package verifier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// sourceFunc is a source that reads resources by path.
type sourceFunc func(ctx context.Context, path string) ([]byte, error)

func (f sourceFunc) Checkpoint(ctx context.Context) ([]byte, error) {
	return f(ctx, roomtest.CheckpointPath)
}

func (f sourceFunc) Tile(ctx context.Context, t audit.Tile) ([]byte, error) { return f(ctx, t.Path()) }

var errLine = errors.New("the line is dead")

// claim returns a checkpoint signed by the operator with any size and root.
func claim(t *testing.T, keys *roomtest.Keys, size uint64, root audit.Hash) []byte {
	t.Helper()
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: keys.Origin, Size: size, Root: root}, keys.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// TestManyPartiesPassedOver: the time of an audit does not grow with the square of the number of parties that were
// passed over one after the other, as when one seat is left.
func TestManyPartiesPassedOver(t *testing.T) {
	auditPassedOver(t, 2_500) // what a first audit prepares is not counted
	few, many := auditPassedOver(t, 5_000), auditPassedOver(t, 20_000)
	if ratio := float64(many) / float64(few); ratio > 10 { // about 4, and 16 with the square
		t.Errorf("four times as many parties take %.1f times as long: %v and %v", ratio, few, many)
	}
}

// auditPassedOver returns the processor time of the audit of a room that passed over a number of parties.
func auditPassedOver(t *testing.T, parties uint64) time.Duration {
	t.Helper()
	keys := newKeys(t, origin, "honest")
	policy := keys.Policy()
	policy.Party, policy.Seats = 2, 1
	room := roomtest.Open(keys, policy)
	for i := range parties {
		e, _ := room.State().NextArrive(roomtest.Opens, roomtest.Ticket(origin, i), fairness.General)
		e.Seats = 2
		room.Append(&e)
	}
	room.Settle(roomtest.Opens + 60_000)
	for p := range fairness.Position(parties) {
		room.Skip(room.State().Now(), room.At(p+1), fairness.TooLarge)
	}
	if room.Err() != nil {
		t.Fatal(room.Err())
	}
	published := publish(t, keys, room.Entries())
	start := processorTime(t)
	if r := auditOf(t, published, knowing(keys)); !r.OK {
		t.Errorf("%+v", r)
	}
	return processorTime(t) - start
}

// processorTime returns the time that this process has computed, which other programs do not lengthen much.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestMalformedCheckpoints(t *testing.T) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	signed := string(honest[roomtest.CheckpointPath])
	size := fmt.Sprintf("\n%d\n", len(room.Entries()))
	for name, text := range map[string]string{
		"empty":              "",
		"HTML":               "<!doctype html><title>Welcome</title>\n\n",
		"no signature":       signed[:strings.Index(signed, "\n\n")+2],
		"no blank line":      strings.Replace(signed, "\n\n", "\n", 1),
		"zero before size":   strings.Replace(signed, size, "\n0"+size[1:], 1),
		"size of 2^62":       strings.Replace(signed, size, "\n4611686018427387904\n", 1),
		"size of 2^64":       strings.Replace(signed, size, "\n18446744073709551616\n", 1),
		"negative size":      strings.Replace(signed, size, "\n-1\n", 1),
		"size of one more":   strings.Replace(signed, size, fmt.Sprintf("\n%d\n", len(room.Entries())-1), 1),
		"another root":       strings.Replace(signed, signed[len(origin)+4:len(origin)+8], "AAAA", 1),
		"another origin":     "x" + signed,
		"extension line":     strings.Replace(signed, "\n\n", "\nextension\n\n", 1),
		"carriage returns":   strings.ReplaceAll(signed, "\n", "\r\n"),
		"cut in signature":   signed[:len(signed)-3],
		"signature of zeros": signed[:len(signed)-20] + "AAAAAAAAAAAAAAAAAAA\n",
		"many lines":         strings.Repeat("\n", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			files := honest.Clone()
			files[roomtest.CheckpointPath] = []byte(text)
			files[audit.Tile{Level: -1, Width: len(room.Entries()) - 1}.Path()] = honest[audit.Tile{Level: -1, Width: len(room.Entries())}.Path()]
			r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
			if r.OK || r.Level != 0 || check(t, r, "signature").Status != verifier.Fail {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestEmptyLog(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	files := publish(t, keys, nil)
	r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
	wantFailed(t, r, "policy")
	if check(t, r, "history").Status != verifier.Pass || check(t, r, "time").Status != verifier.Skipped {
		t.Errorf("%+v", r.Checks)
	}
	wantFailed(t, auditOf(t, files, verifier.Trust{Kept: files[roomtest.CheckpointPath]}), "policy")
}

// If the checkpoint claims a size that the log does not have, the audit ends at the first missing bundle,
// after a bounded number of requests.
func TestAbsurdSizes(t *testing.T) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	full := roomtest.Open(keys, keys.Policy())
	full.Join(roomtest.Opens, 300)
	files := publish(t, keys, full.Entries())
	for _, size := range []uint64{302, 512, 513, 1 << 32, 1<<60 - 1, 1 << 60} {
		var requests atomic.Int64
		files[roomtest.CheckpointPath] = claim(t, keys, size, audit.Hash{})
		src := sourceFunc(func(ctx context.Context, path string) ([]byte, error) {
			requests.Add(1)
			b, err := files.Checkpoint(ctx)
			if path != roomtest.CheckpointPath {
				b, err = files.Get(path)
			}
			return b, err
		})
		if r, err := verifier.Audit(t.Context(), src, verifier.Trust{VKey: keys.VKey}); err == nil {
			t.Errorf("size %d: %+v", size, r)
		}
		if n := requests.Load(); n > 100 {
			t.Errorf("size %d: %d requests", size, n)
		}
	}
	honest[roomtest.CheckpointPath] = claim(t, keys, 1<<60, audit.Hash{})
	if r, err := verifier.Audit(t.Context(), honest, verifier.Trust{}); err == nil {
		t.Errorf("%+v", r)
	}
}

// A failed check is reported even if the rest is withheld.
func TestWithheldAfterAFailure(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 600)
	files := publish(t, keys, transcript(room.Entries()).drop(7))
	delete(files, audit.Tile{Level: -1, Index: 1, Width: audit.TileWidth}.Path())
	r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
	wantFailed(t, r, "arrival")
	if c := check(t, r, "history"); c.Status != verifier.Skipped || !strings.Contains(c.Detail, "tile/entries/001") {
		t.Errorf("history: %+v", c)
	}
	other := newKeys(t, origin, "rival")
	wantFailed(t, auditOf(t, files, verifier.Trust{VKey: other.VKey}), "signature", "identity", "arrival")
}

func TestMalformedBundles(t *testing.T) {
	keys, room := small(t)
	entries := room.Entries()
	honest := publish(t, keys, entries)
	path := audit.Tile{Level: -1, Width: len(entries)}.Path()
	good := honest[path]
	huge := []byte{}
	for range audit.TileWidth {
		huge = append(append(huge, 0xff, 0xff), make([]byte, audit.MaxEntrySize)...)
	}
	for name, bundle := range map[string][]byte{
		"none":             {},
		"one byte":         good[:1],
		"half an entry":    good[:100],
		"an entry fewer":   good[:len(good)-2-len(entries[len(entries)-1])],
		"a byte fewer":     good[:len(good)-1],
		"a byte more":      append(slices.Clone(good), 0),
		"an entry more":    append(slices.Clone(good), 0, 0),
		"all empty":        make([]byte, 2*len(entries)),
		"all empty, more":  make([]byte, 1000),
		"a tile of hashes": make([]byte, 32*len(entries)),
		"the largest":      huge,
		"all ones":         slices.Repeat([]byte{0xff}, 70_000),
	} {
		t.Run(name, func(t *testing.T) {
			files := honest.Clone()
			files[path] = bundle
			r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
			if r.OK || r.Level != 0 || check(t, r, "history").Status != verifier.Fail {
				t.Errorf("%+v", r)
			}
			if c := check(t, r, "end"); name == "an entry fewer" && c.Status != verifier.Skipped {
				t.Errorf("end: %+v", c)
			}
		})
	}
}

// A room entry of the maximum size is checked, and quoted in short form.
func TestLongEntriesAreQuotedShort(t *testing.T) {
	keys, room := small(t)
	long := transcript(room.Entries()).insert(3, "arrive \x1b[31m\u202e"+strings.Repeat("x", 65_000))
	r := auditOf(t, publish(t, keys, long), verifier.Trust{})
	wantFailed(t, r, "form")
	if d := check(t, r, "form").Detail; len(d) > 400 || strings.ContainsAny(d, "\x1b\u202e") || !strings.HasPrefix(d, "entry 3 ") {
		t.Errorf("%d bytes: %q", len(d), d)
	}
}

func TestSourceErrors(t *testing.T) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	for _, dead := range []string{roomtest.CheckpointPath, audit.Tile{Level: -1, Width: len(room.Entries())}.Path()} {
		src := sourceFunc(func(_ context.Context, path string) ([]byte, error) {
			if path == dead {
				return nil, errLine
			}
			return honest.Get(path)
		})
		if r, err := verifier.Audit(t.Context(), src, verifier.Trust{}); !errors.Is(err, errLine) || r != nil {
			t.Errorf("%s: report %v, error %v", dead, r, err)
		}
	}
}

// An audit that is cancelled, or lacks a file, neither passes nor fails, and leaves nothing running.
func TestStopped(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 1000)
	for name, want := range map[string]error{"cancelled": context.Canceled, "missing": errLine} {
		t.Run(name, func(t *testing.T) {
			entries := transcript(room.Entries())
			if name == "cancelled" {
				entries = entries.drop(3) // makes a check fail
			}
			files := publish(t, keys, entries)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var running atomic.Int64
			src := sourceFunc(func(ctx context.Context, path string) ([]byte, error) {
				running.Add(1)
				defer running.Add(-1)
				switch {
				case path == roomtest.CheckpointPath || path == "tile/entries/000":
					return files.Get(path)
				case name == "missing" && path == "tile/entries/001":
					return nil, errLine
				case name == "cancelled":
					time.AfterFunc(10*time.Millisecond, cancel)
				}
				<-ctx.Done()
				time.Sleep(20 * time.Millisecond) // notices the cancellation late
				return nil, ctx.Err()
			})
			r, err := verifier.Audit(ctx, src, verifier.Trust{})
			if !errors.Is(err, want) || r != nil {
				t.Errorf("report %v, error %v, want %v", r, err, want)
			}
			if n := running.Load(); n != 0 {
				t.Errorf("%d requests still running", n)
			}
		})
	}
}

// FuzzAudit mangles a published log. Nothing panics. Unless the operator has signed the mangled log, it is
// verified only if its entries and checkpoint are unchanged.
func FuzzAudit(f *testing.F) {
	keys, room := small(f)
	honest := publish(f, keys, room.Entries())
	paths := []string{roomtest.CheckpointPath}
	for t := range audit.Tiles(uint64(len(room.Entries()))) {
		paths = append(paths, t.Path())
	}
	f.Add(uint8(0), uint16(3), []byte("x"), false)
	f.Add(uint8(1), uint16(900), []byte("call"), true)
	f.Add(uint8(2), uint16(0), []byte{}, false)
	f.Fuzz(func(t *testing.T, which uint8, at uint16, splice []byte, sign bool) {
		path := paths[int(which)%len(paths)]
		files := honest.Clone()
		was := honest[path]
		from := int(at) % (len(was) + 1)
		mangled := slices.Concat(was[:from], splice, was[min(from+len(splice), len(was)):])
		files[path] = mangled
		if sign && path != roomtest.CheckpointPath {
			var entries [][]byte
			_ = audit.SplitBundle(mangled, audit.TileWidth, func(e []byte) error { // as far as possible
				entries = append(entries, e)
				return nil
			})
			files = publish(t, keys, entries)
		}
		r, err := verifier.Audit(t.Context(), files, verifier.Trust{VKey: keys.VKey, Kept: honest[roomtest.CheckpointPath]})
		if err != nil {
			return
		}
		touched := !slices.Equal(mangled, was) && !strings.HasPrefix(path, "tile/0/")
		if r.OK && touched && !sign {
			t.Errorf("verified with %s mangled", path)
		}
		if !r.OK && r.Level != 0 || r.OK && r.Level == 0 {
			t.Errorf("ok %v at level %d", r.OK, r.Level)
		}
	})
}

// FuzzAuditSigned lets the operator rearrange entries, use any text as an entry, and sign. Nothing panics,
// and the history is always intact.
func FuzzAuditSigned(f *testing.F) {
	keys, room := small(f)
	f.Add([]byte{0, 9, 0, 1, 12, 3, 2, 20, 21}, []byte("arrive"))
	for _, e := range room.Entries() {
		f.Add([]byte{3, 7, 0}, e)
	}
	f.Fuzz(func(t *testing.T, ops, text []byte) {
		tr := transcript(room.Entries())
		for ; len(ops) >= 3 && len(tr) > 1; ops = ops[3:] {
			i, j := int(ops[1])%len(tr), int(ops[2])%len(tr)
			switch ops[0] % 5 {
			case 0:
				tr = tr.drop(i)
			case 1:
				tr = tr.swap(i, j)
			case 2:
				tr = tr.insert(i, string(tr[j]))
			case 3:
				tr = tr.insert(i, string(text))
			case 4:
				tr = tr.nudge(i, j%8, 1)
			}
		}
		files, err := roomtest.Publish(keys, tr)
		if err != nil {
			return // longer than an entry may be
		}
		r := auditOf(t, files, verifier.Trust{VKey: keys.VKey})
		if check(t, r, "history").Status != verifier.Pass || check(t, r, "signature").Status != verifier.Pass {
			t.Errorf("%+v", r.Checks[:2])
		}
	})
}
