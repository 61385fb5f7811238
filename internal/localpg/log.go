//go:build unix

package localpg

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxLog is the size in bytes at which the log file is moved aside.
const maxLog = 16 << 20

// logFile is the file that postgres writes its messages to. It is opened to
// append, so that it can be truncated under the writers.
type logFile struct {
	*os.File
	start int64 // where the messages of the present run begin
}

func openLog(path string) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of postgres: %w", err)
	}
	return &logFile{File: f}, nil
}

// begin marks the start of a run of postgres.
func (l *logFile) begin() {
	l.rotate()
	if info, err := l.Stat(); err == nil {
		l.start = info.Size()
	}
}

// rotate moves a full log aside, over the one before. The file stays the same,
// postgres holds it open: it is copied and emptied, and a message written in
// between is lost. Failing is no reason to stop the database, so that the next
// minute tries again.
func (l *logFile) rotate() {
	info, err := l.Stat()
	if err != nil || info.Size() < maxLog {
		return
	}
	old, err := os.OpenFile(l.Name()+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	_, err = io.Copy(old, io.NewSectionReader(l, 0, info.Size()))
	if errors.Join(err, old.Close()) == nil && l.Truncate(0) == nil {
		l.start = 0
	}
}

// reason returns the last fatal message of the present run, or "".
func (l *logFile) reason() string {
	var last string
	lines := bufio.NewScanner(io.NewSectionReader(l, l.start, maxLog))
	for lines.Scan() {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(lines.Text(), level); ok {
				last = strings.TrimSpace(text)
			}
		}
	}
	return last
}
