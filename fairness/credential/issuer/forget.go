package issuer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrForgotten is returned when the records of an offer were deleted while it was asked for a credential.
var ErrForgotten = errors.New("the offer is over")

// offerOf returns the offer whose records a file has.
func offerOf(file string) (offer string, ok bool) {
	name, isLog := strings.CutSuffix(file, ".log")
	at := strings.LastIndexByte(name, '-')
	if !isLog || at < 0 {
		return "", false
	}
	room, err := hex.DecodeString(name[at+1:])
	return name[:at], err == nil && len(room) == 8
}

// Forget deletes the records of offers that are over, and returns how many there were; with check, it only counts them.
// An offer without records would issue to every account again, so it must be over for good.
func (s *Store) Forget(isOver func(offer string) bool, check bool) (records int64, err error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("forget records: %w", err)
	}
	for _, f := range files {
		offer, ok := offerOf(f.Name())
		if !ok || !isOver(offer) {
			continue
		}
		info, err := f.Info()
		if err == nil && !check {
			err = s.remove(f.Name())
		}
		if err != nil {
			return records, fmt.Errorf("forget records of %s: %w", offer, err)
		}
		records += info.Size() / recordSize
	}
	return records, nil
}

// remove deletes the file of a ledger, which may be open.
func (s *Store) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.ledgers[name]; l != nil {
		l.mu.Lock()
		l.failed = ErrForgotten
		l.mu.Unlock()
		_ = l.file.Close() // what is being written fails, as it may
		delete(s.ledgers, name)
	}
	return errors.Join(os.Remove(filepath.Join(s.dir, name)), syncDir(s.dir))
}
