package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// standing is what became of the inclusion proof of a receipt.
type standing struct {
	text string
	err  error // the proof does not hold
}

// checkReceipts checks that receipts prove the entries that they are of. agree
// says which exhibits are of one history; none are known to be of two.
func (h *hearing) checkReceipts(ctx context.Context, agree [][]bool) {
	for i := range h.exhibits {
		if x := &h.exhibits[i]; x.receipt != nil {
			x.standing = h.checkReceipt(ctx, x, agree[i])
		}
	}
}

func (h *hearing) checkReceipt(ctx context.Context, x *exhibit, agrees []bool) standing {
	if x.receipt.Index >= x.head.Size {
		return standing{err: fmt.Errorf("%s: of entry %d, and its checkpoint has %s", x.name, x.receipt.Index, numeral.Count(x.head.Size, "entry", "entries"))}
	}
	if x.entry != nil {
		return x.proves(x.entry)
	}
	unread := errors.New("add --source URL|DIR, which has the entry")
	for i, from := range h.exhibits {
		if from.src == nil || x.receipt.Index >= from.head.Size {
			continue
		}
		entry, err := from.published(ctx, x.receipt.Index)
		if err == nil {
			s := x.proves(entry)
			if s.err == nil || agrees[i] {
				return s
			}
			err = fmt.Errorf("%s may be of another history: %w", from.name, s.err)
		}
		unread = err
	}
	return standing{text: fmt.Sprintf("what it proves was not checked: %v", unread)}
}

// proves tells whether a receipt is one of an entry.
func (x *exhibit) proves(entry []byte) standing {
	if err := audit.VerifyInclusion(x.head, x.receipt.Index, audit.LeafHash(entry), x.receipt.Path); err != nil {
		return standing{err: fmt.Errorf("%s: %w", x.name, err)}
	}
	text := fmt.Sprintf("proves entry %d", x.receipt.Index)
	if e, err := fairness.ParseEntry(entry); err == nil {
		if arrive, ok := e.(*fairness.Arrive); ok {
			text += fmt.Sprintf(", the arrival of the ticket %v", arrive.Ticket)
		}
	}
	return standing{text: text}
}

// published reads an entry of a transcript, and checks it against the signed
// root: a copy that somebody changed says nothing about a receipt.
func (x *exhibit) published(ctx context.Context, index uint64) (entry []byte, err error) {
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
