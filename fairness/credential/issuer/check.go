package issuer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Records are what a store has of an offer of signed credentials, at the time when it was read.
type Records struct {
	issuer *Issuer
	offer  *Offer
	asked  map[[hashSize]byte][hashSize]byte // by account
}

// ReadRecords reads the records of an offer from the directory of a store, which another process may have open. It
// returns [ErrForgotten] if they were deleted.
func (i *Issuer) ReadRecords(dir string, o *Offer) (*Records, error) {
	rs := &Records{i, o, map[[hashSize]byte][hashSize]byte{}}
	path := filepath.Join(dir, "issued", ledgerName(o))
	text, err := os.ReadFile(path) //nolint:gosec // names of offers are checked
	if errors.Is(err, fs.ErrNotExist) {
		var isOver bool
		if isOver, err = isForgotten(path); err == nil && !isOver {
			return rs, nil // nothing was issued
		}
		err = cmp.Or(err, ErrForgotten)
	}
	if err == nil {
		_, err = readRecords(text, rs.asked)
	}
	if err != nil {
		return nil, fmt.Errorf("read records of %s: %w", o.Name, err)
	}
	return rs, nil
}

// Has reports whether the issuer has signed a credential with a nullifier for a place. An account of an offer that is
// not once may have asked for several places: any of them is taken as asked for.
func (rs *Records) Has(nullifier []byte, r Request) bool {
	id, request := rs.issuer.hashes(rs.offer, string(nullifier), asked(r))
	first, ok := rs.asked[id]
	return ok && first != void && (!rs.offer.Once || first == request)
}
