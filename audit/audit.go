// Package audit implements a room's transcript as a transparency log: its formats and arithmetic,
// without storage, network or clock.
//
// A log is an append-only list of entries, opaque byte strings of at most [MaxEntrySize] bytes,
// hashed into the Merkle tree of RFC 6962 with SHA-256. The package reads and writes the formats
// that a log publishes, as C2SP defines them:
//
//   - [Checkpoint]: the signed size and root (signed-note, tlog-checkpoint);
//   - [Tile] and the entry bundles: the tree and the entries (tlog-tiles);
//   - [Proof]: the receipt for one entry (tlog-proof).
//
// [Tree] appends batches to a log; the [Extension] of a batch proves each of its entries without
// reading anything back. [ProveInclusion] and [ProveConsistency] build proofs from published tiles,
// which they check against the checkpoint; [VerifyInclusion], [VerifyConsistency] and
// [Proof.Verify] check proofs.
//
// Every parser accepts only the bytes that its counterpart would write. FORMAT.md in this folder
// specifies the same formats for implementations in other languages; testdata has vectors.
//
// Specifications:
//
//	https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1
//	https://c2sp.org/signed-note
//	https://c2sp.org/tlog-checkpoint
//	https://c2sp.org/tlog-tiles
//	https://c2sp.org/tlog-proof
package audit

import (
	"crypto/sha256"
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	// MaxEntrySize is the maximum size of an entry in bytes: a bundle stores lengths in 16 bits.
	MaxEntrySize = 1<<16 - 1

	// MaxSize is the largest number of entries that this package handles. No real log reaches it; it
	// protects 64-bit tree arithmetic from overflows by untrusted sizes.
	MaxSize = 1 << 60

	// TileWidth is the number of hashes of a full tile, and of entries of a full bundle.
	TileWidth = 256

	tileHeight = 8 // log2(TileWidth)
)

var (
	// ErrEntrySize is returned when an entry is longer than MaxEntrySize.
	ErrEntrySize = errors.New("entry larger than 65535 bytes")
	// ErrRange is returned when an index, a size or a subtree lies outside its tree.
	ErrRange = errors.New("outside the tree")
	// ErrKey is returned when a signing key or its name is unusable.
	ErrKey = errors.New("unusable key")
	// ErrCheckpoint is returned when checkpoint text is malformed or not canonical.
	ErrCheckpoint = errors.New("malformed checkpoint")
	// ErrSignature is returned when a checkpoint lacks the log's signature, or has an invalid
	// signature of a known key.
	ErrSignature = errors.New("checkpoint not validly signed")
	// ErrTilePath is returned for a path that is not that of a tile or bundle.
	ErrTilePath = errors.New("malformed tile path")
	// ErrBundle is returned when an entry bundle is truncated or has more or fewer entries than its
	// width.
	ErrBundle = errors.New("malformed entry bundle")
	// ErrTile is returned when tiles do not hash to the root of the checkpoint.
	ErrTile = errors.New("tiles do not match the checkpoint")
	// ErrProof is returned when the text of a proof is malformed or not canonical.
	ErrProof = errors.New("malformed proof")
	// ErrInclusion is returned when an inclusion proof does not lead to the root.
	ErrInclusion = errors.New("entry is not in the tree")
	// ErrConsistency is returned when one tree is not proven to be a prefix of the other.
	ErrConsistency = errors.New("histories differ")
)

// Hash is a SHA-256 node of the tree; its String method gives standard base64.
type Hash = tlog.Hash

// LeafHash returns the hash of an entry as a leaf, SHA-256(0x00 || entry).
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1
func LeafHash(entry []byte) Hash { return tlog.RecordHash(entry) }

// emptyRoot is the root of a log without entries.
//
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1
var emptyRoot = Hash(sha256.Sum256(nil))
