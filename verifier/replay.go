package verifier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// auditor is the state of one audit.
type auditor struct {
	src    Source
	trust  Trust
	signed []byte
	head   audit.Checkpoint
	key    note.Verifier // key of the log; nil: not known yet
	report *Report

	tree     audit.Tree  // tree of the completed bundles
	fault    error       // error of the next, malformed bundle
	keptRoot *audit.Hash // root at the size of the kept checkpoint

	group *group      // current group
	block *block      // current bundle
	done  int         // applied entries of block
	part  *audit.Tree // tree including the first entries of block, as far as requested

	parser fairness.Parser
	state  fairness.State
	broken bool // an entry broke a rule
	seen   map[fairness.Kind]uint64
	seeds  map[fairness.Seed]uint64          // first entry that used each seed
	last   map[fairness.Lane]fairness.Assign // latest assign entry of each lane

	cosigners []string // cosigners of the current draw
}

// block is one bundle, split and hashed.
type block struct {
	tile    audit.Tile
	entries [][]byte
	leaves  []audit.Hash
	root    audit.Hash // root of the leaves
	fault   error      // parse error; entries and leaves end before it
	err     error      // read error
}

// blocks yields the bundles of a log in order. It fetches, hashes and passes them to each ahead, in parallel.
func blocks(ctx context.Context, src Source, size uint64, each OnBundle) iter.Seq[*block] {
	return func(yield func(*block) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		pending := make(chan chan *block, readAhead)
		for next := uint64(0); next < size || len(pending) > 0; {
			for ; next < size && len(pending) < readAhead; next += audit.TileWidth {
				t := audit.Tile{Level: -1, Index: next / audit.TileWidth, Width: int(min(audit.TileWidth, size-next))}
				one := make(chan *block, 1)
				work.Go(func() {
					b := readBlock(ctx, src, t)
					if each != nil && b.err == nil && b.fault == nil {
						each(ctx, b.tile, b.leaves, b.root)
					}
					one <- b
				})
				pending <- one
			}
			if !yield(<-<-pending) {
				return
			}
		}
	}
}

func readBlock(ctx context.Context, src Source, t audit.Tile) *block {
	b := &block{tile: t, entries: make([][]byte, 0, t.Width), leaves: make([]audit.Hash, 0, t.Width)}
	bundle, err := src.Tile(ctx, t)
	if err != nil {
		b.err = fmt.Errorf("read %s: %w", t.Path(), err)
		return b
	}
	var tree audit.Tree
	b.fault = audit.SplitBundle(bundle, t.Width, func(entry []byte) error {
		leaf := audit.LeafHash(entry)
		tree.Append(leaf)
		b.entries, b.leaves = append(b.entries, entry), append(b.leaves, leaf)
		return nil
	})
	b.root = tree.Root()
	return b
}

// read processes all bundles, up to a malformed one. After an entry that breaks a rule it only
// hashes, so that the history still gets its own verdict.
func (a *auditor) read(ctx context.Context) error {
	kept, errKept := Unverified(a.trust.Kept)
	for g := range groups(ctx, a.src, a.head.Size, a.trust.OnBundle) {
		a.group = g
		for _, b := range g.blocks {
			if b.err != nil {
				return b.err
			}
			a.replay(b)
			if errKept == nil && a.keptRoot == nil && kept.Size <= a.tree.Size()+uint64(len(b.leaves)) {
				a.part = nil
				root := a.rootAfter(kept.Size - a.tree.Size())
				a.keptRoot = &root
			}
			if b.fault != nil {
				a.fault = fmt.Errorf("%s: %w", b.tile.Path(), b.fault)
				return nil
			}
			a.grow(b)
			if a.trust.Progress != nil {
				a.trust.Progress(a.tree.Size(), a.head.Size)
			}
		}
	}
	return nil
}

// replay applies the entries of a bundle.
func (a *auditor) replay(b *block) {
	a.block, a.part = b, nil
	for a.done = 0; a.done < len(b.entries) && !a.broken; a.done++ {
		a.entry(b.entries[a.done])
	}
}

// grow adds a bundle to the tree; a full one in one step.
func (a *auditor) grow(b *block) {
	if len(b.leaves) == audit.TileWidth && a.tree.AppendSubtree(8, b.root) == nil {
		return
	}
	for _, leaf := range b.leaves {
		a.tree.Append(leaf)
	}
}

// entry checks one entry: its form, two redundant assertions, and the rules.
func (a *auditor) entry(text []byte) {
	e, err := a.parser.Parse(text)
	if err != nil {
		a.breach(checkForm, text, err.Error())
		return
	}
	a.seen[fairness.KindOf(e)]++
	a.seen[""]++
	a.assert(e, text)
	a.cosigners = nil
	var v *fairness.Violation
	switch err := a.state.Apply(e, a); {
	case errors.As(err, &v):
		a.breach(string(v.Rule), text, v.Detail)
	case err != nil:
		a.breach(checkForm, text, err.Error())
	case a.state.Size() == 1:
		a.checkIdentity(a.state.Policy())
	case fairness.KindOf(e) == fairness.KindDraw:
		a.countWitnesses()
	}
	if a.trust.OnEntry != nil && !a.broken {
		a.trust.OnEntry(&a.state, e)
	}
}

// countWitnesses records whether enough witnesses had cosigned the freeze of a draw in time: as many as the policy
// says, and more than half of all, counting only those the auditor knows.
func (a *auditor) countWitnesses() {
	p := a.state.Policy()
	if p.Quorum == 0 {
		return
	}
	if len(a.cosigners) >= int(p.Quorum) {
		a.report.Witnessed++
	}
	known := 0
	for _, w := range a.cosigners {
		if a.knows(w) {
			known++
		}
	}
	if known >= p.Majority() {
		a.report.Vouched++
	}
}

// cosigned returns how many witnesses of the policy, of those the auditor knows, cosigned the checkpoint.
func (a *auditor) cosigned() (n uint64) {
	if a.key == nil {
		return 0
	}
	for _, vkey := range a.state.Policy().Witnesses {
		w, err := audit.ParseWitness(vkey)
		if err != nil || !a.knows(vkey) {
			continue
		}
		if _, signed, err := audit.OpenCheckpoint(a.signed, a.key, w); err == nil {
			if _, ok := w.Cosignature(signed); ok {
				n++
			}
		}
	}
	return n
}

// knows reports whether the auditor knows a witness of the policy, by its public key: a name is not signed.
func (a *auditor) knows(witness string) bool {
	w, err := audit.ParseWitness(witness)
	return err == nil && slices.ContainsFunc(a.trust.Witnesses, func(vkey string) bool {
		known, err := audit.ParseWitness(vkey)
		return err == nil && known.Key == w.Key
	})
}

// assert checks, independently of the state, two properties whose violation would be the worst: no
// ticket overtakes an earlier window, and no seed decides twice.
func (a *auditor) assert(e fairness.Entry, text []byte) {
	switch e := e.(type) {
	case *fairness.Assign:
		last := a.last[e.Lane]
		p := a.state.Policy() // without further and empty lots, everybody's places follow one another
		if e.Position <= last.Position || e.Window < last.Window ||
			e.Position > last.Position+1 && !p.HasGaps() {
			a.breach(checkFIFO, text, fmt.Sprintf("place %d of window %d follows place %d of window %d", e.Position,
				e.Window, last.Position, last.Window))
		}
		a.last[e.Lane] = *e
	case *fairness.Draw:
		if before, twice := a.seeds[e.Seed]; twice {
			a.breach(checkSeeds, text, fmt.Sprintf("entry %d used the same seed", before))
		}
		a.seeds[e.Seed] = a.state.Size()
	}
}

// breach fails a check because of the current entry.
func (a *auditor) breach(check string, text []byte, detail string) {
	a.broken = true
	a.report.set(check, Fail, "%s: %s", quote(a.state.Size(), text), detail)
}

// quote describes an entry by its index and the beginning of its text, safe to print.
func quote(index uint64, text []byte) string { return fmt.Sprintf("entry %d %.120q", index, text) }

// Root implements [fairness.Oracle] with the recomputed tree.
func (a *auditor) Root() [fairness.HashSize]byte { return a.rootAfter(uint64(a.done)) }

// rootAfter returns the root with the first n entries of the block; n must not decrease between
// calls.
func (a *auditor) rootAfter(n uint64) audit.Hash {
	if a.part == nil {
		a.part = a.tree.Clone()
	}
	for a.part.Size() < a.tree.Size()+n {
		a.part.Append(a.block.leaves[a.part.Size()-a.tree.Size()])
	}
	return a.part.Root()
}

// VerifyCosignature implements [fairness.Oracle].
func (a *auditor) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte,
	c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: a.state.Policy().Origin, Size: size,
		Root: root}.CosignedAt(witness, audit.Cosignature(c))
	if err == nil {
		a.cosigners = append(a.cosigners, witness)
	}
	return fairness.Time(seconds * 1000), err
}
