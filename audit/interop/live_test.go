package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/proof"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	visitors   = 600
	crowd      = 8 // visitors at a time
	pace       = 40 * time.Millisecond
	saleLimit  = 2 * time.Minute
	retryAfter = 50 * time.Millisecond
)

// config is a room that is open at once, with a window every second.
var config = map[string]any{
	"slug": "interop", "title": "Interop",
	"windows": []map[string]any{{"length": "1s"}},
	"outflow": map[string]any{"per_minute": 60_000},
	"claim":   "5m", "session": "5m",
}

// room is the organizer's view of a room.
type room struct {
	URL    string `json:"url"`
	VKey   string `json:"vkey"`
	Size   uint64 `json:"size"`
	Phase  string `json:"phase"`
	server *server
}

// visitor is the response to a join.
type visitor struct {
	Ticket  string `json:"ticket"`
	Secret  string `json:"secret"`
	Index   uint64 `json:"index"`
	Receipt string `json:"receipt"`
}

// TestLive runs a sale on the real server while the foreign readers follow its log. Afterwards it compares
// the log, every receipt and every checkpoint with each other.
func TestLive(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), saleLimit)
	defer cancel()
	r := create(t, ctx, s)
	prefix, err := url.Parse(r.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	live := published{prefix: prefix, key: verifier(t, r.VKey)}

	following := follow(t, ctx, live)
	sold := sell(t, ctx, r)
	settle(t, ctx, r, live)
	heads := following()

	entries := readAll(t, readers[0], live)
	for _, other := range readers[1:] {
		if !slices.EqualFunc(entries, readAll(t, other, live), bytes.Equal) {
			t.Errorf("%s and %s read different entries", readers[0].name, other.name)
		}
	}
	checkKinds(t, entries)
	checkReceipts(t, live, sold, entries)
	checkHeads(t, live, heads, entries)
}

// create creates a room through the management API.
func create(t *testing.T, ctx context.Context, s *server) *room {
	t.Helper()
	r := &room{server: s}
	if _, err := s.do(ctx, http.MethodPost, s.url+"/v1/rooms", config, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// each calls a function for every visitor, for a few of them at a time.
func each(n int, do func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, crowd)
	for worker := range crowd {
		group.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += crowd {
				errs[worker] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// sell lets all visitors join, over several windows, and claim when called.
func sell(t *testing.T, ctx context.Context, r *room) []visitor {
	t.Helper()
	all := make([]visitor, visitors)
	err := each(visitors, func(i int) error {
		time.Sleep(pace)
		_, err := r.server.do(ctx, http.MethodPost, r.URL+"/join", struct{}{}, &all[i])
		return err
	})
	if err == nil {
		err = each(visitors, func(i int) error { return claim(ctx, r, all[i]) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// claim requests a visitor's pass until the visitor is called.
func claim(ctx context.Context, r *room, v visitor) error {
	body := map[string]string{"secret": v.Secret}
	for {
		status, err := r.server.do(ctx, http.MethodPost, r.URL+"/tickets/"+v.Ticket+"/claim", body, nil)
		if err != nil || status == http.StatusOK {
			return err
		}
		time.Sleep(retryAfter)
	}
}

// settle ends the room and waits until the whole log is published.
func settle(t *testing.T, ctx context.Context, r *room, live published) {
	t.Helper()
	managed := r.server.url + "/v1/rooms/interop"
	if _, err := r.server.do(ctx, http.MethodPost, managed+"/end", struct{}{}, r); err != nil {
		t.Fatal(err)
	}
	if r.Phase != "ended" {
		t.Fatalf("the room is %s after its end", r.Phase)
	}
	for uint64(head(t, live).N) != r.Size {
		if ctx.Err() != nil {
			t.Fatalf("the checkpoint stays at %d of %d entries", head(t, live).N, r.Size)
		}
		time.Sleep(retryAfter)
	}
}

// follow reads the growing log with each reader in turn and tracks its checkpoints, until the returned
// function is called, which returns the checkpoints seen.
func follow(t *testing.T, ctx context.Context, live published) (stop func() [][]byte) {
	t.Helper()
	tracker := track(t, live)
	done, ended := make(chan struct{}), make(chan struct{})
	var heads [][]byte
	var failed error
	go func() {
		defer close(ended)
		var before [][]byte
		for turn := 0; failed == nil; turn++ {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			default:
			}
			var signed []byte
			if _, _, signed, failed = tracker.Update(ctx); failed != nil {
				return
			}
			if len(heads) == 0 || !bytes.Equal(signed, heads[len(heads)-1]) {
				heads = append(heads, signed)
			}
			before, failed = reread(ctx, readers[turn%len(readers)], live, before)
		}
	}()
	return func() [][]byte {
		t.Helper()
		close(done)
		<-ended
		if failed != nil {
			t.Fatalf("follow the log: %v", failed)
		}
		return heads
	}
}

// reread reads the log and checks that it begins with the entries read before.
func reread(ctx context.Context, r reader, live published, before [][]byte) ([][]byte, error) {
	now, err := r.read(ctx, live)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	if len(now) < len(before) || !slices.EqualFunc(now[:len(before)], before, bytes.Equal) {
		return nil, fmt.Errorf("%s: %d entries do not begin with the %d read before", r.name, len(now), len(before))
	}
	return now, nil
}

// checkKinds checks that the log has the entries of a whole sale.
func checkKinds(t *testing.T, entries [][]byte) {
	t.Helper()
	got := map[string]int{}
	for _, e := range entries {
		kind, _, _ := strings.Cut(string(e), " ")
		kind, _, _ = strings.Cut(kind, "\n")
		got[kind]++
	}
	for kind, want := range map[string]int{"room": 1, "arrive": visitors, "assign": visitors, "admit": visitors, "end": 1} {
		if got[kind] != want {
			t.Errorf("%d entries of kind %s, want %d", got[kind], kind, want)
		}
	}
	if got["freeze"] < 2 || got["draw"] != got["freeze"] || got["call"] == 0 {
		t.Errorf("%d freezes, %d draws, %d calls; want several windows", got["freeze"], got["draw"], got["call"])
	}
}

// checkReceipts opens every receipt with foreign code. Each must prove the visitor's own entry, as in the
// log, for a checkpoint that the log continued.
func checkReceipts(t *testing.T, live published, all []visitor, entries [][]byte) {
	t.Helper()
	latest := head(t, live)
	checked := map[uint64]bool{} // sizes whose growth to the latest is proven
	for _, v := range all {
		cp, err := openReceipt(live, v, entries)
		if err != nil {
			t.Fatalf("receipt of %s: %v", v.Ticket, err)
		}
		if !checked[cp.Size] {
			checked[cp.Size] = true
			checkGrowth(t, live, tlog.Tree{N: int64(cp.Size), Hash: tlog.Hash(cp.Hash)}, latest)
		}
	}
	t.Logf("%d receipts against %d checkpoints", len(all), len(checked))
}

// openReceipt verifies a receipt and returns its checkpoint.
func openReceipt(live published, v visitor, entries [][]byte) (*log.Checkpoint, error) {
	var receipt proof.TLogProof
	if err := receipt.Unmarshal([]byte(v.Receipt)); err != nil {
		return nil, err
	}
	if !bytes.Equal(receipt.Marshal(), []byte(v.Receipt)) {
		return nil, errors.New("written again it differs")
	}
	entry := entries[v.Index]
	if receipt.Index != v.Index || !bytes.HasPrefix(entry, []byte("arrive ")) || !bytes.Contains(entry, []byte(" "+v.Ticket)) {
		return nil, fmt.Errorf("entry %d is %q, proven is %d", v.Index, entry, receipt.Index)
	}
	cp, _, _, err := log.ParseCheckpoint(receipt.Checkpoint, live.key.Name(), live.key)
	if err != nil {
		return nil, err
	}
	path := make([][]byte, len(receipt.Hashes))
	for i := range path {
		path[i] = receipt.Hashes[i][:]
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(entry)
	return cp, merkle.VerifyInclusion(rfc6962.DefaultHasher, v.Index, cp.Size, leaf, path, cp.Hash)
}

// checkHeads reads the log again at every size that was published, and checks that each is a beginning of the
// current log.
func checkHeads(t *testing.T, live published, heads [][]byte, entries [][]byte) {
	t.Helper()
	if len(heads) < 3 {
		t.Errorf("%d checkpoints seen, want several", len(heads))
	}
	for _, signed := range heads {
		then := live
		then.head = signed
		old := head(t, then)
		checkGrowth(t, live, old, head(t, live))
		for _, r := range readers {
			if got := readAll(t, r, then); !slices.EqualFunc(got, entries[:old.N], bytes.Equal) {
				t.Errorf("%s reads other entries at size %d", r.name, old.N)
			}
		}
	}
	t.Logf("%d published checkpoints of a log of %d entries", len(heads), len(entries))
}
