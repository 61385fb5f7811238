// Package mark records, outside of the database, how far this node has seen each log: its size and root. The marks
// show the node when a database has lost committed entries, because it was restored from a backup, or because a
// standby that lagged behind took over.
//
// A directory has a file for each node that uses it: marks-1, marks-2, and so on. A line of text for each
// batch is written with one write(2) before anything of the batch is shown, and synced once a second. So a
// mark survives the process and the database, but may miss the last second before a power cut. The process
// that writes marks-1 holds marks-1.lock with flock(2).
//
//	node 0b3e4d8e-...                    the node's name, kept for its next start
//	SLUG KEY SIZE ROOT CRC               room, id of the log's key, entries, root hash
//
// The passes that this node redeemed are in redeemed-1.1, redeemed-1.2 and so on, written and synced in the
// same way. A file is removed once all its sessions have ended.
//
//	ROOM PASS EXPIRES ENDS CRC           ids in base64url, milliseconds since the Unix epoch
//
// A line that is incomplete or has a wrong checksum is ignored.
package mark

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
)

const (
	prefix    = "marks-"
	mostNodes = 64      // maximum number of nodes that share a directory
	mostBytes = 8 << 20 // size at which a file is rewritten
	syncEvery = time.Second
)

// ErrTaken is returned when too many nodes use a directory.
var ErrTaken = errors.New("the directory of marks is used by too many servers")

// RemoteName is the name of a [Remote] for logs and users.
const RemoteName = "object storage"

// Remote keeps marks where the loss of this machine does not reach them.
type Remote interface {
	// Put has a mark stored soon, unless a higher one is stored. It does not wait.
	Put(log Log, m pglog.Mark)
	// Get returns the stored mark of a log; zero: there is none.
	Get(ctx context.Context, log Log) (pglog.Mark, error)
	// Slugs returns the rooms of which marks were stored when this process started.
	Slugs() []string
	// Run stores marks until ctx is done. It passes marks that it finds to check, which reports whether the database
	// continues them.
	Run(ctx context.Context, check func(ctx context.Context, log Log, m pglog.Mark) (bool, error))
	// Close stores the marks that wait, once Run has returned.
	Close() error
	// Away returns how long the place has not answered; 0: it answers.
	Away() time.Duration
	// Lag returns how long the oldest mark that is not stored yet has waited.
	Lag() time.Duration
}

// Log identifies a log: a room that is created again under the same slug has a different key.
type Log struct {
	Slug string
	Key  uint32
}

// Store stores marks. It is safe for concurrent use.
type Store struct {
	// Remote keeps the marks as well; nil: there is none. It is set before the store is used.
	Remote Remote

	node uuid.UUID
	path string // empty: in memory only
	lock *os.File

	mu      sync.Mutex // guards the fields below
	marks   map[Log]pglog.Mark
	file    *os.File
	written int64
	dirty   bool  // written to since the latest sync
	torn    bool  // the latest line may be incomplete
	err     error // result of the latest write
	line    []byte

	redeemed redeemed

	closed chan struct{}
	synced chan struct{} // closed when the syncing goroutine has ended
}

// Memory returns a store that keeps marks only until the process ends.
func Memory() *Store { return &Store{node: uuid.New(), marks: map[Log]pglog.Mark{}} }

// Open returns the store of a directory, with the marks of all nodes that use it or have used it. It creates
// the directory if necessary.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open marks: %w", err)
	}
	s := Memory()
	if err := s.claim(dir); err != nil {
		return nil, fmt.Errorf("open marks: %w", err)
	}
	err := s.load(dir)
	if err == nil {
		err = s.rewrite()
	}
	if err == nil {
		err = s.redeemed.open(s.path)
	}
	if err != nil {
		_ = s.lock.Close()
		return nil, fmt.Errorf("open marks: %w", err)
	}
	s.closed, s.synced = make(chan struct{}), make(chan struct{})
	go s.sync()
	return s, nil
}

// Read returns the marks of a directory, for a process that writes none.
func Read(dir string) (*Store, error) {
	s := Memory()
	if err := s.load(dir); err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	return s, nil
}

// claim takes the first file that no running process uses.
func (s *Store) claim(dir string) error {
	for n := 1; n <= mostNodes; n++ {
		path := filepath.Join(dir, prefix+strconv.Itoa(n))
		lock, err := tryLock(path + ".lock")
		if err != nil {
			return err
		}
		if lock != nil {
			s.path, s.lock = path, lock
			return nil
		}
	}
	return ErrTaken
}

// load reads the files of all nodes, and this node's name from its own.
func (s *Store) load(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(file), prefix)); err != nil {
			continue
		}
		text, err := os.ReadFile(file) //nolint:gosec // in the operator's directory
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			if id, ok := bytes.CutPrefix(line, []byte("node ")); ok && file == s.path {
				if node, err := uuid.ParseBytes(bytes.TrimSpace(id)); err == nil {
					s.node = node
				}
			}
			if log, m, ok := ParseLine(line); ok && m.Size > s.marks[log].Size {
				s.marks[log] = m
			}
		}
	}
	return nil
}

// Node returns this node's name among the servers of the database.
func (s *Store) Node() uuid.UUID { return s.node }

// Name returns this node's name for logs and users.
func (s *Store) Name() string { return "server " + s.node.String()[:8] }

// IsKept reports whether marks survive the process.
func (s *Store) IsKept() bool { return s.path != "" }

// Err returns the error of the latest write; nil: it succeeded.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Get returns the mark of a log; zero: never seen.
func (s *Store) Get(log Log) pglog.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[log]
}

// All returns all marks.
func (s *Store) All() map[Log]pglog.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.marks)
}

// Elsewhere returns the mark of a log in the remote place; zero: there is none.
func (s *Store) Elsewhere(ctx context.Context, log Log) (pglog.Mark, error) {
	if s.Remote == nil {
		return pglog.Mark{}, nil
	}
	return s.Remote.Get(ctx, log)
}

// Slugs returns the rooms that the remote place knows, in no particular order.
func (s *Store) Slugs() []string {
	if s.Remote == nil {
		return nil
	}
	return s.Remote.Slugs()
}

// Knows reports whether this node has seen a log of the room, or the remote place has.
func (s *Store) Knows(slug string) bool {
	if slices.Contains(s.Slugs(), slug) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for log := range s.marks {
		if log.Slug == slug {
			return true
		}
	}
	return false
}

// Put stores the mark of a log with one write. If the write fails, Put returns the error, and the mark is kept in
// memory only.
func (s *Store) Put(log Log, m pglog.Mark) error {
	if s.Remote != nil {
		s.Remote.Put(log, m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Size <= s.marks[log].Size {
		return nil
	}
	s.marks[log] = m
	if s.path == "" {
		return nil
	}
	if s.written > mostBytes {
		if s.err = s.rewrite(); s.err == nil {
			return nil
		}
	}
	s.line = s.line[:0]
	if s.torn {
		s.line = append(s.line, '\n')
	}
	s.line = AppendLine(s.line, log, m)
	n, err := s.file.Write(s.line)
	s.written += int64(n)
	s.dirty, s.torn, s.err = true, err != nil, err
	return err
}

// Forget deletes the marks of a room.
func (s *Store) Forget(slug string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.marks, func(log Log, _ pglog.Mark) bool { return log.Slug == slug })
	if s.path == "" {
		return nil
	}
	return s.rewrite()
}

// rewrite replaces the file with one that has a line for each log.
func (s *Store) rewrite() error {
	text := []byte("node " + s.node.String() + "\n")
	for log, m := range s.marks {
		text = AppendLine(text, log, m)
	}
	file, err := os.OpenFile(s.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(s.path+".new", s.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if s.file != nil {
		_ = s.file.Close() // the new file has everything
	}
	s.file, s.written, s.dirty, s.torn = file, int64(len(text)), false, false
	return nil
}

// sync syncs marks and redemptions to disk once a second.
func (s *Store) sync() {
	defer close(s.synced)
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = errors.Join(s.flush(), s.redeemed.flush()) // the next write reports the error
		case <-s.closed:
			return
		}
	}
}

func (s *Store) flush() error {
	s.mu.Lock()
	file, dirty := s.file, s.dirty
	s.dirty = false
	s.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: replaced by a synced file
		return err
	}
	return nil
}

// Close syncs all marks to disk and releases the file.
func (s *Store) Close() (err error) {
	if s.Remote != nil {
		err = s.Remote.Close()
	}
	if s.path == "" {
		return err
	}
	close(s.closed)
	<-s.synced
	return errors.Join(err, s.flush(), s.file.Close(), s.redeemed.close(), s.lock.Close())
}

// AppendLine appends the line of a mark.
func AppendLine(dst []byte, log Log, m pglog.Mark) []byte {
	start := len(dst)
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], log.Key)
	dst = append(dst, log.Slug...)
	dst = append(dst, ' ')
	dst = hex.AppendEncode(dst, key[:])
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, m.Size, 10)
	dst = append(dst, ' ')
	dst = base64.StdEncoding.AppendEncode(dst, m.Root[:])
	return appendSum(dst, start)
}

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// ParseLine parses a line. ok is false for an invalid one.
func ParseLine(line []byte) (log Log, m pglog.Mark, ok bool) {
	fields, ok := checked(line, 5)
	if !ok {
		return log, m, false
	}
	key, errKey := strconv.ParseUint(fields[1], 16, 32)
	size, errSize := strconv.ParseUint(fields[2], 10, 64)
	root, errRoot := base64.StdEncoding.DecodeString(fields[3])
	if errors.Join(errKey, errSize, errRoot) != nil || len(root) != len(m.Root) {
		return log, m, false
	}
	return Log{fields[0], uint32(key)}, pglog.Mark{Size: size, Root: audit.Hash(root)}, true
}
