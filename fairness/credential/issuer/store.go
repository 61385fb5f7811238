package issuer

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/proofline/proofline/internal/filelock"
)

// Errors of stores.
var (
	ErrLocked = filelock.ErrLocked
	ErrStore  = errors.New("the store is damaged") // a line that is not a record
)

// hashSize is the length of the hashes in a store in bytes.
const hashSize = 16

// recordSize is the length of a record: two hashes in hex, a space and a newline.
const recordSize = 4*hashSize + 2

// Store remembers who was issued a credential, in a directory of its own:
//
//	lock                         held while the store is open
//	issued/<offer>-<room>.log    a line for each account: its keyed hash, and of what it asked for, zeros if it is void
//	issued/<offer>-<room>.over   empty: the records were deleted, and the offer issues nothing more
//	passkeys.log                 a line for each passkey: keyed hashes, and its sealed record
//
// <room> is the beginning of the room's hash. Files only grow, and a record is on the disk before its
// credential leaves the program. A crash can leave part of a last line, whose visitor has no credential
// yet: it is cut off when the file is read.
type Store struct {
	dir  string
	lock *os.File

	mu      sync.Mutex
	ledgers map[string]*ledger // by file name

	passkeys *passkeys // nil: not opened yet
}

// OpenStore opens or creates a store. It fails with [ErrLocked] if another process has it open.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: filepath.Join(dir, "issued"), ledgers: map[string]*ledger{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	var err error
	if s.lock, err = filelock.Lock(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// Close lets another process open the store. Requests under way must have ended.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.ledgers {
		errs = append(errs, l.file.Close())
	}
	if s.passkeys != nil {
		errs = append(errs, s.passkeys.file.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// take records an account of an offer with what it asked for. It returns again if the account is
// recorded: then, if once is set, it must have asked for the same. Of two concurrent calls for one
// account, the second waits until the record of the first is on the disk.
func (s *Store) take(o *Offer, account, asked [hashSize]byte, once bool) (again bool, err error) {
	l, err := s.ledger(o)
	if err != nil {
		return false, err
	}
	b, again, err := l.add(account, asked, once, o.Limit)
	if err != nil || b == nil {
		return again, err
	}
	<-b.done
	return again, b.err
}

// count returns how many accounts of an offer are recorded.
func (s *Store) count(o *Offer) (int, error) {
	l, err := s.ledger(o)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked) - l.void, l.failed
}

func (s *Store) ledger(o *Offer) (*ledger, error) {
	name := ledgerName(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.ledgers[name]; l != nil {
		return l, nil
	}
	l, err := openLedger(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	s.ledgers[name] = l
	return l, nil
}

func ledgerName(o *Offer) string { return fmt.Sprintf("%s-%x.log", o.Name, o.Room[:8]) }

// ledger holds the records of one offer.
type ledger struct {
	file *os.File

	mu      sync.Mutex
	asked   map[[hashSize]byte][hashSize]byte // by account, those being written included
	void    int                               // number of those that are void
	next    *batch                            // to be written; nil: none
	writing *batch                            // being written; nil: none
	failed  error                             // of a write: nothing can be recorded until the file is opened again
	sync    func(*os.File) error              // tests replace it
}

// batch is a group of records that one write makes durable.
type batch struct {
	text []byte
	done chan struct{} // closed when err is set
	err  error
}

// openLedger reads a file, or creates it. It returns [ErrForgotten] if it was deleted.
func openLedger(path string) (*ledger, error) {
	if isOver, err := isForgotten(path); err != nil || isOver {
		return nil, cmp.Or(err, ErrForgotten)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	l := &ledger{file: f, asked: map[[hashSize]byte][hashSize]byte{}, sync: (*os.File).Sync}
	if err := errors.Join(l.load(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), f.Close())
	}
	return l, nil
}

func (l *ledger) load() error {
	text, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	whole, err := readRecords(text, l.asked)
	if err != nil {
		return fmt.Errorf("%w: %s", err, l.file.Name())
	}
	for _, asked := range l.asked {
		if asked == void {
			l.void++
		}
	}
	if whole < len(text) {
		return errors.Join(l.file.Truncate(int64(whole)), l.file.Sync())
	}
	return nil
}

// readRecords reads the whole lines of a ledger, and returns how long they are.
func readRecords(text []byte, records map[[hashSize]byte][hashSize]byte) (whole int, err error) {
	whole = bytes.LastIndexByte(text, '\n') + 1
	for at := 0; at < whole; at += recordSize {
		account, asked, ok := parseRecord(text[at:min(at+recordSize, whole)])
		if !ok {
			return at, fmt.Errorf("%w: byte %d", ErrStore, at)
		}
		records[account] = asked
	}
	return whole, nil
}

func appendRecord(dst []byte, account, asked [hashSize]byte) []byte {
	dst = append(hex.AppendEncode(dst, account[:]), ' ')
	return append(hex.AppendEncode(dst, asked[:]), '\n')
}

func parseRecord(line []byte) (account, asked [hashSize]byte, ok bool) {
	const middle = 2 * hashSize
	if len(line) != recordSize {
		return account, asked, false
	}
	_, err1 := hex.Decode(account[:], line[:middle])
	_, err2 := hex.Decode(asked[:], line[middle+1:recordSize-1])
	return account, asked, err1 == nil && err2 == nil && bytes.Equal(appendRecord(nil, account, asked), line)
}

// add adds a record to the next batch. It returns the batch to wait for; nil: the account's record is on the disk.
func (l *ledger) add(account, asked [hashSize]byte, once bool, limit uint32) (b *batch, again bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, again := l.asked[account]
	switch {
	case l.failed != nil:
		return nil, false, l.failed
	case again && before == void && asked != void:
		return nil, true, ErrVoid
	case again && once && before != asked:
		return nil, true, ErrUsed
	case again && l.next != nil:
		return l.next, true, nil // its record is in it, or in the one before
	case again:
		return l.writing, true, nil
	case limit > 0 && len(l.asked)-l.void >= int(limit):
		return nil, false, ErrLimit
	}
	if l.asked[account] = asked; asked == void {
		l.void++
	}
	if l.next == nil {
		l.next = &batch{done: make(chan struct{})}
		if l.writing == nil {
			go l.write()
		}
	}
	l.next.text = appendRecord(l.next.text, account, asked)
	return l.next, false, nil
}

// write writes batches until there are none.
func (l *ledger) write() {
	for {
		l.mu.Lock()
		b := l.next
		l.next, l.writing = nil, b
		failed, sync := l.failed, l.sync
		l.mu.Unlock()
		if b == nil {
			return
		}
		if failed == nil {
			_, err := l.file.Write(b.text)
			if err == nil {
				err = sync(l.file)
			}
			if err != nil {
				failed = fmt.Errorf("record what was issued: %w", err)
			}
		}
		l.mu.Lock()
		l.failed, b.err = failed, failed
		l.mu.Unlock()
		close(b.done)
	}
}

// syncDir makes the directory's entries durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
