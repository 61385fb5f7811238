// Package transcript downloads a room's whole transcript and compares it with the
// answers that visitors received. It trusts the server no more than a visitor does.
package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// ErrMismatch is returned when the transcript contradicts an answer to a visitor.
var ErrMismatch = errors.New("the transcript contradicts the answer to the visitor")

// Transcript is a published log.
type Transcript struct {
	Checkpoint audit.Checkpoint
	Entries    [][]byte
	key        note.Verifier
}

// Read downloads the transcript published at a URL and verifies its signature with the key. It does
// not check the rules; that is what an audit is for.
func Read(ctx context.Context, url, vkey string) (*Transcript, error) {
	src, err := source.HTTP(url, nil)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	t := &Transcript{}
	if t.key, err = audit.ParseKey(vkey); err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	signed, err := src.Checkpoint(ctx)
	if err == nil {
		t.Checkpoint, _, err = audit.OpenCheckpoint(signed, t.key)
	}
	if err == nil {
		err = Each(ctx, src, t.Checkpoint.Size, func(entry []byte) error {
			t.Entries = append(t.Entries, bytes.Clone(entry))
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	return t, nil
}

// Each passes the first entries of a log, of the given number, to a function, in order. An entry is valid until
// the function returns.
func Each(ctx context.Context, src verifier.Source, size uint64, do func(entry []byte) error) error {
	for tile := range audit.Tiles(size) {
		if tile.Level >= 0 {
			continue
		}
		bundle, err := src.Tile(ctx, tile)
		if err == nil {
			err = audit.SplitBundle(bundle, tile.Width, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckReceipt checks that a join's receipt proves, under the room's key, the
// arrival in the server's answer, and that the transcript has that arrival at the
// same index.
func (t *Transcript) CheckReceipt(j *api.Joined) error {
	entry, err := j.Entry()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	proof, err := audit.ParseProof([]byte(j.Receipt))
	if err == nil {
		_, err = proof.Verify(audit.LeafHash(entry), t.key)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: receipt of %s: %w", ErrMismatch, j.Ticket, err)
	case proof.Index != j.Index:
		return fmt.Errorf("%w: receipt of %s is for entry %d, the answer says %d",
			ErrMismatch, j.Ticket, proof.Index, j.Index)
	case j.Index >= uint64(len(t.Entries)):
		return fmt.Errorf("%w: the transcript has %d entries, but %s is entry %d",
			ErrMismatch, len(t.Entries), j.Ticket, j.Index)
	case !bytes.Equal(t.Entries[j.Index], entry):
		return fmt.Errorf("%w: entry %d is %q, the answer says %q", ErrMismatch, j.Index, t.Entries[j.Index], entry)
	}
	return nil
}
