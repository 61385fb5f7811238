package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// copied is a file-based source: a directory or an archive.
type copied interface {
	verifier.Source
	file(path string, bound int64) ([]byte, error)
}

// IsCopy reports whether a source is a directory or an archive, which
// [CheckCopy] can check.
func IsCopy(src verifier.Source) bool {
	_, ok := src.(copied)
	return ok
}

// CheckCopy checks the parts of a copy that an audit does not read: the tiles of hashes, the file
// vkey, and the witnesses' lines in the checkpoint. The copy must have passed an audit. It returns
// the number of matching files and, in plain words, what is not checked. It fails with ErrMismatch
// on a file that is missing or wrong.
func CheckCopy(ctx context.Context, src verifier.Source) (fit uint64, unchecked []string, err error) {
	c, ok := src.(copied)
	if !ok {
		return 0, nil, errors.New("not a copy")
	}
	signed, err := c.Checkpoint(ctx)
	if err != nil {
		return 0, nil, err
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return 0, nil, err
	}
	read := func(t audit.Tile) ([]byte, error) { return c.Tile(ctx, t) }
	bad, err := mismatchedTiles(ctx, read, head)
	if err != nil {
		for _, t := range bad {
			if _, errRead := read(t); errors.Is(errRead, fs.ErrNotExist) {
				return 0, nil, fmt.Errorf("%w: %s is missing", ErrMismatch, t.Path())
			}
		}
		return 0, nil, err
	}
	policy, err := policyOf(read, head.Size)
	if err != nil || policy == nil {
		return 0, nil, err
	}
	fit = 1 + tiles(head.Size)
	switch vkey, err := c.file(VKeyPath, maxCheckpoint); {
	case errors.Is(err, fs.ErrNotExist):
		unchecked = append(unchecked, "there is no file vkey")
	case err != nil:
		return 0, nil, err
	case string(vkey) != policy.LogKey+"\n":
		return 0, nil, fmt.Errorf("%w: the file vkey has a different key than the room entry", ErrMismatch)
	default:
		fit++
	}
	others, err := checkLines(signed, policy.LogKey, policy.Witnesses)
	if others > 0 {
		unchecked = append(unchecked,
			fmt.Sprintf("%d signature lines of the checkpoint are by keys that the room does not name", others))
	}
	return fit, unchecked, err
}

// checkLines checks the signature lines of the log and of the policy's witnesses in a checkpoint,
// and counts the other lines.
func checkLines(signed []byte, vkey string, witnesses []string) (others int, err error) {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	var known []note.Verifier
	for _, text := range witnesses {
		w, err := audit.ParseWitness(text)
		if err != nil {
			continue // not an Ed25519 witness; the audit reports it where it matters
		}
		if !slices.ContainsFunc(known, func(k note.Verifier) bool {
			return k.Name() == w.Name() && k.KeyHash() == w.KeyHash()
		}) {
			known = append(known, w)
		}
	}
	_, n, err := audit.OpenCheckpoint(signed, key, known...)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return len(n.UnverifiedSigs), nil
}
