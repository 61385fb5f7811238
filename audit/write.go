package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// This file holds what a log needs to sign checkpoints and to serve its files, and a client to check a receipt. The
// auditor's program compiles without it.

// SignCheckpoint returns the signed checkpoint. The first signer is the log's and must have the
// origin as its name, otherwise the error is ErrKey. It does not sign checkpoints that
// [ParseCheckpoint] would reject.
//
// https://c2sp.org/signed-note
func SignCheckpoint(c Checkpoint, signers ...note.Signer) ([]byte, error) {
	if len(signers) == 0 || signers[0].Name() != c.Origin {
		return nil, fmt.Errorf("sign checkpoint of %q: %w", c.Origin, ErrKey)
	}
	if _, err := ParseCheckpoint(c.Marshal()); err != nil {
		return nil, fmt.Errorf("sign checkpoint of %q: %w", c.Origin, err)
	}
	signed, err := note.Sign(&note.Note{Text: c.Marshal()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint of %q: %w", c.Origin, err)
	}
	return signed, nil
}

// NewSigner returns the signer and the vkey of a log whose Ed25519 private key has the given
// 32-byte seed (RFC 8032). It fails with ErrKey on a seed of another length and on an origin that
// cannot name a key.
//
// https://c2sp.org/signed-note#verifier-keys
func NewSigner(origin string, seed []byte) (signer note.Signer, vkey string, err error) {
	if len(seed) != ed25519.SeedSize || !validOrigin(origin) {
		return nil, "", fmt.Errorf("new signer %q: %w", origin, ErrKey)
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	vkey, err = note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return nil, "", fmt.Errorf("new signer %q: %w", origin, err)
	}
	// note.NewSigner reads a secret key in the form of a vkey around the seed.
	nameAndID := vkey[:len(origin)+len("+01234567+")]
	const algEd25519 = "\x01"
	secret := base64.StdEncoding.EncodeToString(append([]byte(algEd25519), seed...))
	signer, err = note.NewSigner("PRIVATE+KEY+" + nameAndID + secret)
	if err != nil {
		return nil, "", fmt.Errorf("new signer %q: %w", origin, err)
	}
	return signer, vkey, nil
}

// ParseTilePath reads the output of [Tile.Path]. It fails with ErrTilePath on anything else and on
// tiles that no tree of up to MaxSize entries has.
func ParseTilePath(path string) (Tile, error) {
	rest := strings.TrimPrefix(path, "tile/")
	if entries, isBundle := strings.CutPrefix(rest, "entries/"); isBundle {
		rest = "data/" + entries
	}
	t, err := tlog.ParseTilePath("tile/8/" + rest)
	tile := Tile{Level: int8(t.L), Index: uint64(t.N), Width: t.W}
	if err != nil || !tile.In(MaxSize) || tile.Path() != path {
		return Tile{}, fmt.Errorf("%w: %q", ErrTilePath, path)
	}
	return tile, nil
}

// AppendBundle appends an entry to an entry bundle: its length as big-endian
// uint16, then its bytes. It fails with ErrEntrySize.
//
// https://c2sp.org/tlog-tiles#log-entries
func AppendBundle(dst, entry []byte) ([]byte, error) {
	if len(entry) > MaxEntrySize {
		return dst, fmt.Errorf("append entry of %d bytes: %w", len(entry), ErrEntrySize)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(entry)))
	return append(dst, entry...), nil
}

// Verify checks that the log's key signed the checkpoint and that the checkpoint's tree has the
// leaf at the proof's index. Errors are those of [OpenCheckpoint] and [VerifyInclusion]. To check
// cosignatures as well, open the Checkpoint with the witnesses' keys.
//
// https://c2sp.org/tlog-proof#verifying-a-tlog-proof
func (p Proof) Verify(leaf Hash, log note.Verifier) (Checkpoint, error) {
	c, _, err := OpenCheckpoint(p.Checkpoint, log)
	if err != nil {
		return Checkpoint{}, err
	}
	if err := VerifyInclusion(c, p.Index, leaf, p.Path); err != nil {
		return Checkpoint{}, err
	}
	return c, nil
}
