package room

import (
	"context"
	"fmt"

	"github.com/proofline/proofline/fairness"
)

// ReadEntries passes the room's transcript, entry by entry from the first on, to
// read. An entry is valid during the call alone. It reads from the database and
// not from memory, compares the whole with the log's root, and stops with the
// first error of read.
func (r *Room) ReadEntries(ctx context.Context, read func(fairness.Entry) error) error {
	var parser fairness.Parser
	err := r.store.Open(r.ID, r.Origin, r.keys.log).Tail(ctx, func(text []byte) error {
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
