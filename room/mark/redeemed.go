package mark

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	redeemedPrefix = "redeemed-"
	partBytes      = 4 << 20 // size at which the next file begins: some 45,000 redemptions
	mostParts      = 32
	partSlack      = time.Hour // tolerance between the clocks of this machine and the database
)

// ErrCrowded is returned when redemptions of live sessions had to be dropped: there are more live sessions
// than a node remembers.
var ErrCrowded = errors.New("dropped the oldest redemptions, although their sessions are live")

// Redemption is a redeemed pass. Times are milliseconds since the Unix epoch by the database's clock.
type Redemption struct {
	Room, Pass uuid.UUID
	Expires    int64 // when the pass expires
	Ends       int64 // when the session ends without touch or release
}

// redeemed stores the redemptions of one node. They are kept only in files, which are read when the database
// may have lost redemptions.
type redeemed struct {
	mu      sync.Mutex // guards the fields below
	path    string     // path of the files without their number; empty: nothing is stored
	parts   []part     // in order of creation; the last one may be open
	file    *os.File   // nil before the first redemption
	written int
	dirty   bool // written to since the latest sync
	torn    bool // the latest line may be incomplete
	line    []byte
}

// part is a file of redemptions.
type part struct {
	number int
	until  int64 // latest end of a session in it
}

func (r *redeemed) name(p part) string { return r.path + strconv.Itoa(p.number) }

// open reads the earlier files of the node. Nothing is appended to them.
func (r *redeemed) open(marks string) error {
	r.path = filepath.Join(filepath.Dir(marks), redeemedPrefix+strings.TrimPrefix(filepath.Base(marks), prefix)+".")
	files, err := filepath.Glob(r.path + "*")
	if err != nil {
		return err
	}
	for _, file := range files {
		number, err := strconv.Atoi(strings.TrimPrefix(file, r.path))
		if err != nil {
			continue
		}
		p := part{number: number}
		list, err := readRedeemed(file)
		if err != nil {
			return err
		}
		for i := range list {
			p.until = max(p.until, list[i].Ends)
		}
		r.parts = append(r.parts, p)
	}
	slices.SortFunc(r.parts, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return nil
}

// prune removes files whose sessions have all ended, and the oldest ones beyond mostParts.
func (r *redeemed) prune() (err error) {
	now := time.Now().Add(-partSlack).UnixMilli()
	r.parts = slices.DeleteFunc(r.parts, func(p part) bool {
		isOver := p.until < now
		if isOver {
			err = errors.Join(err, os.Remove(r.name(p)))
		}
		return isOver
	})
	for len(r.parts) >= mostParts {
		err = errors.Join(err, ErrCrowded, os.Remove(r.name(r.parts[0])))
		r.parts = r.parts[1:]
	}
	return err
}

// put appends a redemption with one write.
func (r *redeemed) put(e Redemption) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" {
		return nil
	}
	if r.file == nil || r.written > partBytes {
		if err = r.turn(); r.file == nil {
			return err
		}
	}
	r.line = r.line[:0]
	if r.torn {
		r.line = append(r.line, '\n')
	}
	r.line = appendRedemption(r.line, e)
	n, failed := r.file.Write(r.line)
	r.written += n
	r.dirty, r.torn = true, failed != nil
	last := &r.parts[len(r.parts)-1]
	last.until = max(last.until, e.Ends)
	return errors.Join(err, failed)
}

// turn begins the next file. If that fails, the current one continues.
func (r *redeemed) turn() error {
	err := r.prune()
	next := part{number: 1}
	if n := len(r.parts); n > 0 {
		next.number = r.parts[n-1].number + 1
	}
	file, failed := os.OpenFile(r.name(next), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Sync(), r.file.Close())
	}
	r.parts = append(r.parts, next)
	r.file, r.written, r.dirty, r.torn = file, 0, false, false
	return err
}

func (r *redeemed) flush() error {
	r.mu.Lock()
	file, dirty := r.file, r.dirty
	r.dirty = false
	r.mu.Unlock()
	if !dirty {
		return nil
	}
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: already synced
		return err
	}
	return nil
}

// close syncs everything to disk and closes the file.
func (r *redeemed) close() error {
	err := r.flush()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// Redeemed stores a redemption. Call it before the site gets the answer.
func (s *Store) Redeemed(r Redemption) error { return s.redeemed.put(r) }

// Redemptions passes the redemptions of all nodes in the directory to do, file by file. Some sessions may have
// ended, and some redemptions may appear twice.
func (s *Store) Redemptions(do func([]Redemption) error) error {
	if s.path == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.path), redeemedPrefix+"*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		list, err := readRedeemed(file)
		if errors.Is(err, os.ErrNotExist) { // pruned: its sessions have ended
			continue
		}
		if err == nil && len(list) > 0 {
			err = do(list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readRedeemed(file string) (list []Redemption, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // in the operator's directory
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if r, ok := parseRedemption(line); ok {
			list = append(list, r)
		}
	}
	return list, nil
}

func appendRedemption(dst []byte, r Redemption) []byte {
	start := len(dst)
	dst = base64.RawURLEncoding.AppendEncode(dst, r.Room[:])
	dst = append(dst, ' ')
	dst = base64.RawURLEncoding.AppendEncode(dst, r.Pass[:])
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, r.Expires, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, r.Ends, 10)
	return appendSum(dst, start)
}

// parseRedemption parses a line. ok is false for an invalid one.
func parseRedemption(line []byte) (r Redemption, ok bool) {
	fields, ok := checked(line, 5)
	if !ok {
		return r, false
	}
	room, errRoom := base64.RawURLEncoding.DecodeString(fields[0])
	pass, errPass := base64.RawURLEncoding.DecodeString(fields[1])
	var errExpires, errEnds error
	r.Expires, errExpires = strconv.ParseInt(fields[2], 10, 64)
	r.Ends, errEnds = strconv.ParseInt(fields[3], 10, 64)
	if err := errors.Join(errRoom, errPass, errExpires, errEnds); err != nil || len(room) != len(r.Room) ||
		len(pass) != len(r.Pass) {
		return r, false
	}
	r.Room, r.Pass = uuid.UUID(room), uuid.UUID(pass)
	return r, true
}

// appendSum appends the checksum of the line that began at start, and ends the line.
func appendSum(dst []byte, start int) []byte { return fmt.Appendf(dst, " %08x\n", sum(dst[start:])) }

// checked returns the n fields of a line that is complete and has the right checksum.
func checked(line []byte, n int) ([]string, bool) {
	at := bytes.LastIndexByte(line, ' ')
	fields := strings.Fields(string(line))
	if len(fields) != n || at < 0 || line[len(line)-1] != '\n' || fmt.Sprintf("%08x", sum(line[:at])) != fields[n-1] {
		return nil, false
	}
	return fields, true
}
