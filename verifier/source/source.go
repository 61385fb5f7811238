// Package source reads published transcripts for package verifier: from a server over HTTP, from a
// directory, from a zip archive, or from an exported room. All use the layout of tlog-tiles
// (https://c2sp.org/tlog-tiles), and [Store] copies a transcript to a directory.
//
// A source returns the published bytes without judging them, within limits of size and time. Errors
// contain the URL or file, and wrap [fs.ErrNotExist] if it does not exist.
package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

var (
	// ErrURL is returned for a text that cannot be the URL of a transcript.
	ErrURL = errors.New("not the URL of a transcript")
	// ErrNoTranscript is returned when a directory contains no transcript, or several.
	ErrNoTranscript = errors.New("no transcript found")
	// ErrTooLarge is returned when a response or file is larger than any file of a log.
	ErrTooLarge = errors.New("too large")
	// ErrStatus is returned when a server answers with an error.
	ErrStatus = errors.New("the server returned an error")
	// ErrIncomplete is returned when a tile or bundle to store has the wrong size.
	ErrIncomplete = errors.New("incomplete")
	// ErrOtherLog is returned when the target directory has another log, or a later state of the same
	// log.
	ErrOtherLog = errors.New("the directory holds another transcript")
	// ErrMismatch is returned when stored files do not match the checkpoint.
	ErrMismatch = errors.New("the copy does not match its checkpoint")
)

// CheckpointPath is the file of a log's signed checkpoint.
const CheckpointPath = "checkpoint"

const (
	maxCheckpoint = 1 << 20 // limit for a signed note, which leaves space for many witnesses
	maxBundle     = audit.TileWidth * (2 + audit.MaxEntrySize)
)

// Open returns the source for an argument: a URL that begins with http:// or https://, a zip
// archive, an exported room, or a directory.
func Open(arg string) (verifier.Source, error) {
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		return HTTP(arg, nil)
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		switch strings.ToLower(filepath.Ext(arg)) {
		case ".zip":
			return Zip(arg)
		case ".tar":
			return tarTranscript(arg)
		}
	}
	return Dir(arg)
}

// bound returns the largest size of a tile or bundle.
func bound(t audit.Tile) int64 {
	if t.Level < 0 {
		return maxBundle
	}
	return audit.TileWidth * int64(len(audit.Hash{}))
}

// tile reads a tile. A log may delete a partial tile once it has the full one, so if it is missing,
// tile reads the full one.
//
// https://c2sp.org/tlog-tiles#partial-tiles
func tile(t audit.Tile, read func(path string, bound int64) ([]byte, error)) ([]byte, error) {
	b, err := read(t.Path(), bound(t))
	if t.Width == audit.TileWidth || !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	full := audit.Tile{Level: t.Level, Index: t.Index, Width: audit.TileWidth}
	b, errFull := read(full.Path(), bound(t))
	if errFull != nil {
		return nil, fmt.Errorf("%w, and no full tile: %w", err, errFull)
	}
	return b[:length(t, b)], nil
}

// length returns the size in bytes of the first t.Width elements of a full tile or bundle. For a
// malformed bundle it returns the size of the whole, so that the verifier reports the error.
func length(t audit.Tile, full []byte) int {
	end := 0
	for range t.Width {
		switch {
		case t.Level >= 0:
			end += len(audit.Hash{})
		case end+2 > len(full):
			return len(full)
		default:
			end += 2 + int(binary.BigEndian.Uint16(full[end:]))
		}
	}
	return min(end, len(full))
}
