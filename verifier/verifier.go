// Package verifier audits a room from its published files alone: it reads the transcript once, from
// the first entry to the last, and recomputes everything.
//
//	checkpoint ─► signature, size, root
//	bundles ────► leaf hashes ─► tree ─► the same root?
//	     └──────► entries ─► fairness.State.Apply ─► the same draws, places, calls?
//
// The result is a [Report] of numbered checks. The package is pure: it reads through a [Source] and
// has no clock. It keeps the state of the room in memory, less than 200 bytes per arrival, and a
// few bundles, but never the whole log.
package verifier

import (
	"context"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// Source provides a transcript in the layout of tlog-tiles. Its methods are called concurrently and
// must return when ctx ends.
type Source interface {
	// Checkpoint returns the latest signed checkpoint.
	Checkpoint(ctx context.Context) ([]byte, error)
	// Tile returns the bytes of a tile of hashes or an entry bundle. If only the full tile still
	// exists, it returns its beginning.
	Tile(ctx context.Context, t audit.Tile) ([]byte, error)
}

// Trust holds the facts that the auditor knows independently of the transcript.
type Trust struct {
	VKey string // key of the log, signed-note form; "": the key in the transcript
	Kept []byte // checkpoint of an earlier audit of the room; nil: none
	// hashes of drand chains that the operator does not run, besides [beacon.Quicknet]
	Beacons   [][32]byte
	Witnesses []string                 // keys of witnesses that are independent of the operator and each other
	Progress  func(done, total uint64) // called after each bundle with the number of entries done; may be nil
	// OnEntry is called after each valid entry, in order; nil: not called. State and entry are valid
	// during the call and must not be changed.
	OnEntry func(s *fairness.State, e fairness.Entry)
	// OnBundle is called with each bundle that has been read and hashed; nil: not called.
	OnBundle OnBundle
}

// OnBundle receives a bundle of entries, the hashes of its entries and their root, before they are
// compared with what is signed. It is called concurrently and in any order, and must not keep leaves.
type OnBundle func(ctx context.Context, bundle audit.Tile, leaves []audit.Hash, root audit.Hash)

// Audit checks the whole transcript. Errors in the transcript become failed checks of the report.
// The error means that the transcript could not be read, and is only returned if no check has
// failed.
func Audit(ctx context.Context, src Source, trust Trust) (*Report, error) {
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	a := &auditor{src: src, trust: trust, signed: signed, report: newReport(), seen: map[fairness.Kind]uint64{},
		seeds: map[fairness.Seed]uint64{}, last: map[fairness.Lane]fairness.Assign{}}
	if a.head, err = Unverified(signed); err != nil {
		a.report.set(checkSignature, Fail, "%v", err)
		return a.finish(), nil
	}
	if trust.VKey != "" {
		a.checkSignature(trust.VKey, "given to this audit")
	}
	if a.head.Size == 0 {
		a.report.set(string(fairness.RulePolicy), Fail, "there are no entries")
	}
	unread := a.read(ctx)
	if unread != nil && (a.report.passing() || ctx.Err() != nil) {
		return nil, unread
	}
	a.checkHistory(ctx, unread)
	a.checkKept()
	return a.finish(), nil
}

// Unverified reads a signed checkpoint without verifying its signatures.
func Unverified(signed []byte) (audit.Checkpoint, error) {
	return audit.UnverifiedCheckpoint(signed)
}

func (a *auditor) checkSignature(vkey, from string) {
	var err error
	if a.key, err = audit.ParseKey(vkey); err == nil {
		_, _, err = audit.OpenCheckpoint(a.signed, a.key)
	}
	if err != nil {
		a.report.set(checkSignature, Fail, "%v; key %.200q, %s", err, vkey, from)
		return
	}
	a.report.set(checkSignature, Pass, "key %s, %s", vkey, from)
}

// checkIdentity compares the origins and keys in room entry, checkpoint and Trust.
func (a *auditor) checkIdentity(p *fairness.Policy) {
	if a.trust.VKey == "" {
		a.checkSignature(p.LogKey, "named by the transcript itself")
	}
	switch {
	case p.Origin != a.head.Origin:
		a.report.set(checkIdentity, Fail, "the room entry is of %q, the checkpoint of %q", p.Origin, a.head.Origin)
	case a.trust.VKey != "" && a.trust.VKey != p.LogKey:
		a.report.set(checkIdentity, Fail, "the room entry names the key %s, the key given is %s",
			p.LogKey, a.trust.VKey)
	default:
		a.report.set(checkIdentity, Pass, "%s", p.Origin)
	}
}

func (a *auditor) checkHistory(ctx context.Context, unread error) {
	root := a.tree.Root()
	switch {
	case unread != nil:
		a.report.set(checkHistory, Skipped, "not read to the end: %v", unread)
	case a.fault != nil:
		a.report.set(checkHistory, Fail, "%v%s", a.fault, a.locate(ctx))
	case root != a.head.Root:
		a.report.set(checkHistory, Fail, "%d entries hash to %v, signed is %v%s", a.head.Size, root, a.head.Root,
			a.locate(ctx))
	default:
		a.report.set(checkHistory, Pass, "%d entries hash to %v", a.head.Size, root)
	}
}

// locate describes the first entry that differs from the signed one, if the published tiles of leaf
// hashes show it. The signed root authenticates the tile it relies on.
func (a *auditor) locate(ctx context.Context) string {
	for b := range blocks(ctx, a.src, a.head.Size, nil) {
		t := audit.Tile{Level: 0, Index: b.tile.Index, Width: b.tile.Width}
		signed, err := a.src.Tile(ctx, t)
		if err != nil || b.err != nil || len(signed) != t.Width*fairness.HashSize {
			return ""
		}
		for i, leaf := range b.leaves {
			if audit.Hash(signed[i*len(leaf):][:len(leaf)]) == leaf {
				continue
			}
			index := t.Index*audit.TileWidth + uint64(i)
			if _, err := audit.ProveInclusion(ctx, a.src.Tile, a.head, index); err != nil {
				return ""
			}
			return "; the first that is not as signed is " + quote(index, b.entries[i])
		}
	}
	return ""
}

// checkKept compares with the checkpoint of an earlier audit. Since all entries are available, it
// recomputes their root at that size instead of relying on a proof.
func (a *auditor) checkKept() {
	if a.trust.Kept == nil || a.key == nil {
		a.report.set(checkKept, Skipped, "no earlier checkpoint given, or no key to open it with")
		return
	}
	kept, _, err := audit.OpenCheckpoint(a.trust.Kept, a.key)
	switch {
	case err != nil:
		a.report.set(checkKept, Fail, "the earlier checkpoint is not of this log: %v", err)
	case kept.Size > a.head.Size:
		a.report.set(checkKept, Fail, "%d entries were signed before, and only %d are now", kept.Size, a.head.Size)
	case a.keptRoot != nil && *a.keptRoot != kept.Root:
		a.report.set(checkKept, Fail, "the first %d entries hash to %v, and to %v before", kept.Size,
			*a.keptRoot, kept.Root)
	case a.report.check(checkHistory).Status != Pass:
		a.report.set(checkKept, Skipped, notReached)
	default:
		a.report.set(checkKept, Pass, "the first %d entries are those of the earlier audit", kept.Size)
	}
}
