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

// maxLog is the size in bytes at which the log file is rotated.
const maxLog = 16 << 20

// logFile is the log file of postgres. Writers append, so that it can be truncated while open.
type logFile struct {
	*os.File
	start int64 // offset of the current run's first message
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

// rotate copies a full log over the previous one and truncates it. postgres keeps the file open, so
// a message written in between is lost. An error must not stop the database; the next minute tries
// again.
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

// reason returns the last fatal message of the current run, or "".
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
