package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// receiptResult is the result of checking a receipt's inclusion proof.
type receiptResult struct {
	text string
	err  error // what is wrong with the proof
}

// checkReceipts checks that receipts prove their entries. agree reports which inputs belong to one
// history; no two are known to contradict each other.
func (c *comparison) checkReceipts(ctx context.Context, agree [][]bool) {
	for i := range c.inputs {
		if x := &c.inputs[i]; x.receipt != nil {
			x.result = c.checkReceipt(ctx, x, agree[i])
		}
	}
}

func (c *comparison) checkReceipt(ctx context.Context, x *input, agrees []bool) receiptResult {
	if x.receipt.Index >= x.head.Size {
		return receiptResult{err: fmt.Errorf("%s: for entry %d, but its checkpoint has %s", x.name, x.receipt.Index,
			numeral.Count(x.head.Size, "entry", "entries"))}
	}
	if x.entry != nil {
		return x.proves(x.entry)
	}
	unread := errors.New("add a transcript that has the entry with --source URL|DIR")
	for i, from := range c.inputs {
		if from.src == nil || x.receipt.Index >= from.head.Size {
			continue
		}
		entry, err := from.published(ctx, x.receipt.Index)
		if err == nil {
			s := x.proves(entry)
			if s.err == nil || agrees[i] {
				return s
			}
			err = fmt.Errorf("%s may have another history: %w", from.name, s.err)
		}
		unread = err
	}
	return receiptResult{text: fmt.Sprintf("not checked against its entry: %v", unread)}
}

// proves checks that a receipt proves an entry.
func (x *input) proves(entry []byte) receiptResult {
	if err := audit.VerifyInclusion(x.head, x.receipt.Index, audit.LeafHash(entry), x.receipt.Path); err != nil {
		return receiptResult{err: fmt.Errorf("%s: %w", x.name, err)}
	}
	text := fmt.Sprintf("proves entry %d", x.receipt.Index)
	if e, err := fairness.ParseEntry(entry); err == nil {
		if arrive, ok := e.(*fairness.Arrive); ok {
			text += fmt.Sprintf(", the arrival of the ticket %v", arrive.Ticket)
		}
	}
	return receiptResult{text: text}
}

// published reads an entry of a transcript and checks it against the signed root, because a changed
// copy would prove nothing about a receipt.
func (x *input) published(ctx context.Context, index uint64) (entry []byte, err error) {
	path, err := audit.ProveInclusion(ctx, x.src.Tile, x.head, index)
	if err != nil {
		return nil, err
	}
	t := audit.Tile{Level: -1, Index: index / audit.TileWidth}
	t.Width = int(min(audit.TileWidth, x.head.Size-t.Index*audit.TileWidth))
	bundle, err := x.src.Tile(ctx, t)
	if err != nil {
		return nil, err
	}
	n := t.Index * audit.TileWidth
	if err := audit.SplitBundle(bundle, t.Width, func(text []byte) error {
		if n == index {
			entry = text
		}
		n++
		return nil
	}); err != nil {
		return nil, err
	}
	return entry, audit.VerifyInclusion(x.head, index, audit.LeafHash(entry), path)
}
