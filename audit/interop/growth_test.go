package interop

import (
	"context"
	"errors"
	"slices"
	"testing"

	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	tessera "github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/tlog"
)

// TestGrow grows a log in its directory, behind a plain file server, and proves that each size is the
// beginning of every later one.
func TestGrow(t *testing.T) {
	dir := t.TempDir()
	log := overHTTP(t, dir)
	write(t, publish(t, scripted(t, sizes[0])), dir)
	tracker := track(t, log)
	var heads []tlog.Tree
	for _, size := range sizes {
		write(t, publish(t, scripted(t, size)), dir)
		if _, _, _, err := tracker.Update(t.Context()); err != nil {
			t.Fatalf("tessera's tracker at size %d: %v", size, err)
		}
		if got := tracker.Latest().Size; got != uint64(size) {
			t.Fatalf("tessera's tracker is at %d, not %d", got, size)
		}
		heads = append(heads, head(t, log))
		for _, old := range heads[:len(heads)-1] {
			checkGrowth(t, log, old, heads[len(heads)-1])
		}
	}
}

// track starts tessera's tracker at the current checkpoint.
func track(t *testing.T, log published) *tessera.LogStateTracker {
	t.Helper()
	f, err := fetcher(log)
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := tessera.NewLogStateTracker(t.Context(), f.ReadTile, nil, log.key, log.key.Name(),
		tessera.UnilateralConsensus(f.ReadCheckpoint))
	if err != nil {
		t.Fatalf("start tessera's tracker: %v", err)
	}
	return tracker
}

// head returns the tree of the current checkpoint.
func head(t *testing.T, log published) tlog.Tree {
	t.Helper()
	signed, err := log.get(t.Context(), "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := openTree(signed, log.key)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// checkGrowth proves with both foreign proof builders that the new tree continues the old one.
func checkGrowth(t *testing.T, log published, old, tree tlog.Tree) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := proveByClient(ctx, log, old, tree); err != nil {
		t.Errorf("tessera: %d to %d: %v", old.N, tree.N, err)
	}
	if err := proveBySumDB(ctx, log, old, tree); err != nil {
		t.Errorf("sumdb: %d to %d: %v", old.N, tree.N, err)
	}
}

func proveByClient(ctx context.Context, log published, old, tree tlog.Tree) error {
	f, err := fetcher(log)
	if err != nil {
		return err
	}
	size, oldSize := uint64(tree.N), uint64(old.N)
	builder, err := tessera.NewProofBuilder(ctx, size, f.ReadTile)
	if err != nil {
		return err
	}
	p, err := builder.ConsistencyProof(ctx, oldSize, size)
	if err != nil {
		return err
	}
	return merkle.VerifyConsistency(rfc6962.DefaultHasher, oldSize, size, p, old.Hash[:], tree.Hash[:])
}

func proveBySumDB(ctx context.Context, log published, old, tree tlog.Tree) error {
	p, err := tlog.ProveTree(tree.N, old.N, tlog.TileHashReader(tree, &tileReader{ctx, log}))
	if err != nil {
		return err
	}
	return tlog.CheckTree(p, tree.N, tree.Hash, old.N, old.Hash)
}

// TestFork shows the readers a second history under the same key: one entry of the beginning that they
// remember differs.
func TestFork(t *testing.T) {
	dir := t.TempDir()
	log := overHTTP(t, dir)
	write(t, publish(t, scripted(t, 300)), dir)
	tracker, old := track(t, log), head(t, log)

	forked := slices.Clone(scripted(t, 1000))
	forked[17], forked[18] = forked[18], forked[17]
	write(t, publish(t, forked), dir)
	_, _, _, err := tracker.Update(t.Context())
	if inconsistent := (tessera.ErrInconsistency{}); !errors.As(err, &inconsistent) {
		t.Errorf("tessera's tracker says %v, not that the log is inconsistent", err)
	}
	tree := head(t, log)
	if err := proveByClient(t.Context(), log, old, tree); err == nil {
		t.Error("tessera proves a fork to be consistent")
	}
	if err := proveBySumDB(t.Context(), log, old, tree); err == nil {
		t.Error("sumdb proves a fork to be consistent")
	}
}
