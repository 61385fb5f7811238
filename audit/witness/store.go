package witness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofline/proofline/internal/filelock"
)

// Kind is the kind of evidence that two checkpoints of one log form.
type Kind string

const (
	// fork: both have the same size and different roots. With the log's key, this proves that the log
	// signed two histories.
	fork Kind = "fork"
	// unproven: a later checkpoint came without a valid proof that it continues the earlier one. This
	// proves nothing by itself, since any client may send a wrong proof with a published checkpoint;
	// but a log that cannot provide a valid proof for the two has signed two histories.
	unproven Kind = "unproven"
)

// maxKept is the maximum number of pairs kept per log and kind: the first ones are enough as
// evidence, and clients must not be able to fill the disk.
const maxKept = 64

// Store is the persistent state of a witness, in a directory of its own:
//
//	lock                                      held while the store is open
//	log/<id>.checkpoint                       latest cosigned checkpoint of a log, with both signatures
//	evidence/<id>/<kind>-<size>-<root>.kept     two checkpoints of one log: cosigned before,
//	evidence/<id>/<kind>-<size>-<root>.offered  and refused
//
// <id> is the SHA-256 of the origin in hexadecimal. An older copy of the directory, such as a
// backup, must never be used: the witness would contradict its later cosignatures.
//
// Callers must not call Swap concurrently for one log.
type Store struct {
	dir  string
	lock *os.File
	// step is called before each step of writing a file; tests let it fail to simulate a crash.
	step func(name string) error
}

// OpenStore opens or creates a store. It fails with ErrLocked if another process has it open.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir, step: func(string) error { return nil }}
	for _, d := range []string{s.dir, filepath.Join(dir, "log"), filepath.Join(dir, "evidence")} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if err := errors.Join(syncDir(filepath.Dir(filepath.Clean(dir))), syncDir(dir)); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	var err error
	if s.lock, err = filelock.Lock(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// Close lets another process open the store.
func (s *Store) Close() error { return s.lock.Close() }

// LogID returns the name of a log in paths: the SHA-256 of its origin in hexadecimal.
//
// https://c2sp.org/tlog-witness#monitor-retrieval-mechanism
func LogID(origin string) string {
	sum := sha256.Sum256([]byte(origin))
	return hex.EncodeToString(sum[:])
}

// Latest returns the latest cosigned checkpoint of a log; nil if it has none.
func (s *Store) Latest(origin string) ([]byte, error) { return s.latest(LogID(origin)) }

func (s *Store) latest(id string) ([]byte, error) {
	b, err := os.ReadFile(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if len(b) == 0 { // after a crash, some file systems leave an unsynced file empty
		return nil, fmt.Errorf("%w: %s is empty", ErrState, s.path(id))
	}
	return b, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, "log", id+".checkpoint") }

// Swap replaces the latest checkpoint of a log. It fails with ErrChanged if the store does not have
// the old one (nil: none). Once it returns, the new checkpoint survives a power cut; if it fails,
// the store has the old or the new one.
func (s *Store) Swap(origin string, old, cosigned []byte) error {
	there, err := s.Latest(origin)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, old) {
		return ErrChanged
	}
	return s.write(s.path(LogID(origin)), cosigned)
}

// Keep stores two checkpoints as evidence, unless they or enough others of that kind are already
// stored. It reports whether it stored them.
func (s *Store) Keep(origin string, kind Kind, name string, kept, offered []byte) (isNew bool, err error) {
	dir := filepath.Join(s.dir, "evidence", LogID(origin))
	if _, err := os.Stat(filepath.Join(dir, name+".kept")); err == nil {
		return false, nil
	}
	if s.evidence(origin, kind) >= maxKept {
		return false, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return false, fmt.Errorf("keep evidence: %w", err)
	}
	// The .kept file is written last: it marks the pair as complete.
	return true, errors.Join(
		syncDir(filepath.Dir(dir)),
		s.write(filepath.Join(dir, name+".offered"), offered),
		s.write(filepath.Join(dir, name+".kept"), kept))
}

// evidence returns the number of stored pairs of a kind for a log.
func (s *Store) evidence(origin string, kind Kind) (n int) {
	files, _ := os.ReadDir(filepath.Join(s.dir, "evidence", LogID(origin))) // the first pair creates the directory
	for _, f := range files {
		if strings.HasPrefix(f.Name(), string(kind)+"-") && strings.HasSuffix(f.Name(), ".kept") {
			n++
		}
	}
	return n
}

// write replaces a file atomically. Once it returns, the file survives a power cut.
func (s *Store) write(path string, b []byte) (err error) {
	temp := path + ".tmp"
	defer func() {
		if err != nil {
			err = fmt.Errorf("write state: %w", err)
		}
	}()
	if err := s.step("write"); err != nil {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, s.step("sync"), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.step("rename"); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	if err := s.step("sync directory"); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the directory's entries durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
