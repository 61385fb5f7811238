package room

import (
	"context"
	"fmt"

	"github.com/proofline/proofline/fairness"
)

// ReadEntries passes the entries of the room's transcript to read, in order; an entry is valid only during
// the call. It reads them from the database, not from memory, compares the result with the log's root, and
// stops at the first error of read.
func (r *Room) ReadEntries(ctx context.Context, read func(fairness.Entry) error) error {
	var parser fairness.Parser
	err := r.store.Open(r.ID, r.Origin, r.keys.Log).Tail(ctx, func(text []byte) error {
		e, err := parser.Parse(text)
		if err != nil {
			return err
		}
		return read(e)
	})
	if err != nil {
		return fmt.Errorf("read transcript of %s: %w", r.Slug, err)
	}
	return nil
}
