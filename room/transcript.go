package room

import (
	"context"
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// Transcript reads a room's public log from the database.
type Transcript struct{ room *Room }

// Checkpoint returns the published checkpoint.
func (t Transcript) Checkpoint(ctx context.Context) ([]byte, error) {
	signed, err := t.room.store.Checkpoint(ctx, t.room.ID)
	if err == nil {
		err = t.room.sequencer.CoverSigned(ctx, signed)
	}
	return signed, err
}

// Tile returns a tile or entry bundle, or [ErrNotFound] when the log does not contain all of it.
func (t Transcript) Tile(ctx context.Context, tile audit.Tile) ([]byte, error) {
	b, err := t.room.store.Tile(ctx, t.room.ID, tile)
	if errors.Is(err, pglog.ErrNotFound) {
		return nil, ErrNotFound
	}
	return b, err
}

// ReadEntries passes the entries of the room's transcript to read, in order; an entry is valid only during
// the call. It reads them from the database, not from memory, compares the result with the log's root, and
// stops at the first error of read.
func (t Transcript) ReadEntries(ctx context.Context, read func(fairness.Entry) error) error {
	var parser fairness.Parser
	err := t.room.store.Open(t.room.ID, t.room.Origin, t.room.keys.Log).Tail(ctx, func(text []byte) error {
		e, err := parser.Parse(text)
		if err != nil {
			return err
		}
		return read(e)
	})
	if err != nil {
		return fmt.Errorf("read transcript of %s: %w", t.room.Slug, err)
	}
	return nil
}

// Merits lists what a ticket has shown after its arrival: a line "method index" for each merit entry, oldest first.
func (t Transcript) Merits(ticket fairness.Ticket) (lines []byte) {
	t.room.view.Read(func(p *projection.Projection, durable uint64) {
		for _, m := range p.Merits(ticket, durable) {
			lines = fmt.Appendf(lines, "%s %d\n", m.Method, m.Index)
		}
	})
	return lines
}

// receipt returns the tlog-proof of an entry against the newest checkpoint.
func (t Transcript) receipt(ctx context.Context, index uint64) ([]byte, error) {
	receipt, err := t.room.store.Receipt(ctx, t.room.ID, index)
	if err != nil {
		return nil, err
	}
	p, err := audit.ParseProof(receipt)
	if err == nil {
		err = t.room.sequencer.CoverSigned(ctx, p.Checkpoint)
	}
	return receipt, err
}
