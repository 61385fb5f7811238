package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/internal/roomtest"
)

func TestWitnessScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/witness",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"free":    freeAddress,
			"healthy": healthy,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/xdg")
			return nil
		},
	})
}

// free sets ADDR to an address on which no program listens.
func freeAddress(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Check(l.Close())
	ts.Setenv("ADDR", l.Addr().String())
}

// healthy URL waits until a witness responds.
func healthy(ts *testscript.TestScript, _ bool, args []string) {
	for range 500 {
		if resp, err := http.Get(args[0] + "healthz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("no answer at %s", args[0])
}

// cosignable is a log of some entries, which differ from an index on.
type cosignable struct {
	signer note.Signer
	vkey   string
	hashes []tlog.Hash // in the layout of tlog.StoredHashes
}

func newCosignable(t *testing.T, size, forkedAt int) *cosignable {
	t.Helper()
	signer, vkey, err := audit.NewSigner("queue.example.com/r/sale", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	l := &cosignable{signer: signer, vkey: vkey}
	for i := range size {
		hashes, err := tlog.StoredHashes(int64(i), fmt.Append(nil, i, i >= forkedAt), l)
		if err != nil {
			t.Fatal(err)
		}
		l.hashes = append(l.hashes, hashes...)
	}
	return l
}

// ReadHashes implements [tlog.HashReader].
func (l *cosignable) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		found[i] = l.hashes[index]
	}
	return found, nil
}

// growth returns a log's request to have a size cosigned.
func (l *cosignable) growth(old, size uint64) (proof []audit.Hash, signed []byte, err error) {
	if old > 0 {
		if proof, err = tlog.ProveTree(int64(size), int64(old), l); err != nil {
			return nil, nil, err
		}
	}
	root, err := tlog.TreeHash(int64(size), l)
	if err != nil {
		return nil, nil, err
	}
	signed, err = audit.SignCheckpoint(audit.Checkpoint{Origin: l.signer.Name(), Size: size, Root: root}, l.signer)
	return proof, signed, err
}

// running is a witness in its own process.
type running struct {
	cmd    *exec.Cmd
	client *witness.Client
	stderr bytes.Buffer
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.CommandContext(t.Context(), "proofline-verify", append([]string{"witness"}, args...)...)}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var address, vkey string
	for scan := bufio.NewScanner(stdout); address == "" && scan.Scan(); {
		if rest, ok := strings.CutPrefix(scan.Text(), "address "); ok {
			address = rest
		}
		if rest, ok := strings.CutPrefix(scan.Text(), "key     "); ok {
			vkey = rest
		}
	}
	key, err := audit.ParseWitness(vkey)
	if err != nil || address == "" {
		_ = r.cmd.Wait()
		t.Fatalf("no witness: %v\n%s", err, &r.stderr)
	}
	r.client = &witness.Client{URL: address, Key: key, Now: time.Now, Timeout: 5 * time.Second}
	return r
}

// kill ends the process like a power cut, not like a user.
func (r *running) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // killed
}

// crowd is a set of logs that use one witness, some of which lie.
type crowd struct {
	honest, forked *cosignable
	mu             sync.Mutex
	cosigned       map[uint64]bool // sizes
	most           uint64
}

// press requests one cosignature after the other until the witness stops.
func (c *crowd) press(client *witness.Client, random *rand.Rand) error {
	for old := uint64(0); ; {
		c.mu.Lock()
		promised := c.most // before the request: from now on nothing smaller may be cosigned
		c.mu.Unlock()
		from, size := c.honest, old+uint64(random.IntN(3))
		if random.IntN(3) == 0 {
			from = c.forked
		}
		size = max(size, 1)
		proof, signed, err := from.growth(old, size)
		if err != nil {
			return err
		}
		cosignature, err := client.AddCheckpoint(context.Background(), old, proof, signed)
		var conflict *witness.ConflictError
		switch {
		case errors.As(err, &conflict):
			if conflict.Size < promised {
				return fmt.Errorf("the witness has %d, and cosigned %d", conflict.Size, promised)
			}
			old = conflict.Size
		case errors.Is(err, witness.ErrUnavailable):
			return nil
		case err == nil && from == c.forked:
			return fmt.Errorf("cosigned another history at %d: %x", size, cosignature)
		case err == nil:
			if size < promised {
				return fmt.Errorf("cosigned %d after %d", size, promised)
			}
			c.mu.Lock()
			c.cosigned[size] = true
			c.most = max(c.most, size)
			c.mu.Unlock()
			old = size
		case !errors.Is(err, witness.ErrInconsistent) || from == c.honest && errors.Is(err, witness.ErrAnswer):
			return err
		}
	}
}

// A witness that is killed under load again and again never cosigns a smaller size or a different root than
// before.
func TestWitnessKilled(t *testing.T) {
	const rounds, customers = 12, 4
	c := &crowd{honest: newCosignable(t, 30000, 30000), forked: newCosignable(t, 30000, 0), cosigned: map[uint64]bool{}}
	dir := filepath.Join(t.TempDir(), "w")
	args := []string{"--dir", dir, "--addr", "127.0.0.1:0", "--log", c.honest.vkey, "--name", "example.org/w"}
	random := rand.New(rand.NewPCG(1, 1))
	for round := range rounds {
		before := c.most
		w := start(t, args...)
		if round == 0 { // the witness accepts the first history that it sees
			_, signed, err := c.honest.growth(0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.client.AddCheckpoint(t.Context(), 0, nil, signed); err != nil {
				t.Fatal(err)
			}
			c.most = 1
		}
		failed := make(chan error, customers)
		for customer := range customers {
			go func() { failed <- c.press(w.client, rand.New(rand.NewPCG(uint64(round), uint64(customer)))) }()
		}
		deadline := time.Now().Add(20 * time.Second)
		for enough := before + 20; time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			c.mu.Lock()
			done := c.most >= enough
			c.mu.Unlock()
			if done {
				break
			}
		}
		time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
		w.kill(t)
		for range customers {
			if err := <-failed; err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if c.most < before+20 {
			t.Fatalf("round %d: from %d to %d\n%s", round, before, c.most, &w.stderr)
		}
	}
	w := start(t, args...)
	_, signed, err := c.honest.growth(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var conflict *witness.ConflictError
	if _, err := w.client.AddCheckpoint(t.Context(), 0, nil, signed); !errors.As(err, &conflict) ||
		conflict.Size < c.most {
		t.Errorf("after %d: %v", c.most, err)
	}
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &w.stderr)
	}
	t.Logf("%d cosignatures, up to size %d, in %d lives", len(c.cosigned), c.most, rounds)
}

// newOperator serves a room at its own address. The room names this address as its own, unless claim is set.
func newOperator(t *testing.T, claim string) (server *httptest.Server, vkey string) {
	t.Helper()
	dir := t.TempDir()
	server = httptest.NewServer(http.StripPrefix("/r/sale", http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	origin := strings.TrimPrefix(server.URL, "http://") + "/r/sale"
	if claim != "" {
		origin = claim
	}
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		t.Fatal(err)
	}
	files, err := roomtest.Small(keys, keys.Policy()).Publish()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	return server, keys.VKey
}

func TestPinning(t *testing.T) {
	room, vkey := newOperator(t, "")
	address := room.URL + "/r/sale"
	impostor, _ := newOperator(t, "queue.example.com/r/sale")
	dir := t.TempDir()
	var logged bytes.Buffer
	f := &follower{dir: dir, given: []string{address, impostor.URL + "/r/sale"},
		log: slog.New(slog.NewTextHandler(&logged, nil)), logged: map[string]string{}}
	if logs, err := f.known(); err != nil || len(logs) != 0 {
		t.Errorf("before: %v, %v", logs, err)
	}
	for range 2 {
		logs, err := f.reload(t.Context())
		if err != nil || len(logs) != 1 || len(logs[strings.TrimPrefix(address, "http://")]) != 1 {
			t.Fatalf("%v, %v\n%s", logs, err, &logged)
		}
	}
	if got := strings.Count(logged.String(), "the log calls itself queue.example.com/r/sale"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, &logged)
	}
	b, err := os.ReadFile(filepath.Join(dir, pinsFile))
	if err != nil || string(b) != address+" "+vkey+"\n" {
		t.Errorf("pinned %q, %v", b, err)
	}

	// Once its key is pinned, the room is not asked again.
	room.Close()
	logs, err := (&follower{dir: dir, given: []string{address}}).known()
	if err != nil || len(logs) != 1 {
		t.Errorf("%v, %v", logs, err)
	}

	// An invalid file of pins is not overwritten.
	if err := os.WriteFile(filepath.Join(dir, pinsFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if logs, err := f.reload(t.Context()); err == nil {
		t.Errorf("%v", logs)
	}
}

func TestLogKeyFails(t *testing.T) {
	room, _ := newOperator(t, "")
	for _, path := range []string{"/r/other", "/r/sale/tile"} {
		if vkey, err := logKey(t.Context(), room.URL+path); err == nil {
			t.Errorf("%s: %s", path, vkey)
		}
	}
	empty := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: "o", Root: (&audit.Tree{}).Root()},
			newCosignable(t, 0, 0).named(t, "o"))
		if err != nil {
			t.Error(err)
		}
		_, _ = rw.Write(signed)
	}))
	defer empty.Close()
	if _, err := logKey(t.Context(), empty.URL); err == nil || !strings.Contains(err.Error(), "there are no entries") {
		t.Errorf("%v", err)
	}
}

// named returns a signer with another origin.
func (l *cosignable) named(t *testing.T, origin string) note.Signer {
	t.Helper()
	signer, _, err := audit.NewSigner(origin, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// The file of logs is read again while the witness runs; an invalid one changes nothing.
func TestLogsFile(t *testing.T) {
	l := newCosignable(t, 10, 10)
	dir := t.TempDir()
	var logged bytes.Buffer
	f := &follower{dir: dir, log: slog.New(slog.NewTextHandler(&logged, nil)), logged: map[string]string{}}
	follows := func() int {
		t.Helper()
		logs, err := f.reload(t.Context())
		if err != nil {
			return -1
		}
		return len(logs)
	}
	got := []int{follows()}
	for _, content := range []string{"# none\n\n", "# one\n  " + l.vkey + "  \n" + l.vkey + "\n", "nonsense\n",
		l.vkey} {
		if err := os.WriteFile(filepath.Join(dir, logsFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got = append(got, follows())
	}
	if want := []int{0, 0, 1, -1, 1}; !slices.Equal(got, want) {
		t.Errorf("followed %v, want %v", got, want)
	}
}

func TestWitnessUnwritable(t *testing.T) {
	var stderr bytes.Buffer
	args := []string{"witness", "--dir", t.TempDir(), "--name", "w", "--addr", "127.0.0.1:0"}
	if code := run(t.Context(), args, broken{}, &stderr, func(string) string { return "" }); code != exitUnreadable {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"witness", "--dir", file, "--name", "w"}, io.Discard, &stderr,
		func(string) string { return "" }); code != exitUnreadable {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}

// The printed address can be used for requests.
func TestReached(t *testing.T) {
	for text, want := range map[string]string{
		"[::]:8091":      "http://localhost:8091/w, and under every name of this machine",
		"0.0.0.0:80":     "http://localhost:80/w, and under every name of this machine",
		"127.0.0.1:8091": "http://127.0.0.1:8091/w",
		"[::1]:8091":     "http://[::1]:8091/w",
	} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
		if got := reached(at, "/w"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
