package issuer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrForgotten is returned for an offer whose records were deleted: it issues nothing more.
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
// Without records an offer would issue to every account again. An empty file says that they were deleted, so that it
// issues nothing more, even if it goes on or was taken for over by a wrong clock.
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

// markerOf returns the path of the file that says that a ledger was deleted.
func markerOf(ledger string) string { return strings.TrimSuffix(ledger, ".log") + ".over" }

// isForgotten reports whether the ledger with a path was deleted.
func isForgotten(path string) (bool, error) {
	_, err := os.Stat(markerOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// remove deletes the file of a ledger, which may be open. Its marker is on the disk before.
func (s *Store) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.dir, name)
	if err := errors.Join(os.WriteFile(markerOf(path), nil, 0o600), syncDir(s.dir)); err != nil {
		return err
	}
	if l := s.ledgers[name]; l != nil {
		l.mu.Lock()
		l.failed = ErrForgotten
		l.mu.Unlock()
		_ = l.file.Close() // what is being written fails, as it may
		delete(s.ledgers, name)
	}
	return errors.Join(os.Remove(path), syncDir(s.dir))
}

// ForgetPasskeys deletes the passkeys that were last used before the day of a time, and returns how many. The file is
// replaced whole.
func (s *Store) ForgetPasskeys(before time.Time) (deleted int, err error) {
	if _, err := os.Stat(s.passkeyFile()); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	k, err := s.openPasskeys()
	if err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var text []byte
	kept := map[[hashSize]byte]keptPasskey{}
	for id, p := range k.known {
		if p.day < dayOf(before) {
			deleted++
			continue
		}
		kept[id] = p
		text = append(text, passkeyLine(id, p)...)
	}
	if deleted == 0 {
		return 0, nil
	}
	file, err := replaceFile(s.passkeyFile(), text)
	if err != nil {
		return 0, fmt.Errorf("forget passkeys: %w", err)
	}
	_ = k.file.Close() // nothing waits to be written
	k.file, k.failed, k.known, k.count = file, nil, map[[hashSize]byte]keptPasskey{}, map[[hashSize]byte]int{}
	for id, p := range kept {
		k.set(id, p)
	}
	return deleted, nil
}

// replaceFile replaces a file, and opens it to append.
func replaceFile(path string, text []byte) (*os.File, error) {
	temp, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the store's directory
	if err != nil {
		return nil, err
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(temp.Name(), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Rename(temp.Name(), path), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
