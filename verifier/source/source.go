// Package source reads published transcripts for package verifier: from a
// server over HTTP, from a directory, or from a zip archive. All lay a room out as
// tlog-tiles does (https://c2sp.org/tlog-tiles), and [Store] copies one to a directory.
//
// A source gives back what it was given, within bounds of size and time; to
// judge it is the verifier's part. Errors name the URL or file, and wrap
// [fs.ErrNotExist] when there is none.
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
	// ErrURL is returned when a text is no URL a transcript can be below.
	ErrURL = errors.New("not the URL of a transcript")
	// ErrNoTranscript is returned when a directory holds no transcript, or several.
	ErrNoTranscript = errors.New("no transcript there")
	// ErrTooLarge is returned when a response or file is larger than a log has any.
	ErrTooLarge = errors.New("too large")
	// ErrStatus is returned when a server answers with an error.
	ErrStatus = errors.New("the server refused")
	// ErrIncomplete is returned when a tile or bundle to store does not have its size.
	ErrIncomplete = errors.New("not complete")
	// ErrOtherLog is returned when the directory to store into holds another log, or a later state of the same.
	ErrOtherLog = errors.New("the directory holds another transcript")
	// ErrMisfit is returned when what is stored is not what the checkpoint signs.
	ErrMisfit = errors.New("the copy does not fit its checkpoint")
)

const (
	checkpointPath = "checkpoint"
	maxCheckpoint  = 1 << 20 // the bound of a signed note, for room for many witnesses
	maxBundle      = audit.TileWidth * (2 + audit.MaxEntrySize)
)

// Open returns the source an argument names: a URL that begins with http://
// or https://, a zip archive, else a directory.
func Open(arg string) (verifier.Source, error) {
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		return HTTP(arg, nil)
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(arg), ".zip") {
		return Zip(arg)
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

// tile reads a tile. A log may delete a partial tile once it has the full one,
// so that is looked for next.
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

// length returns how many bytes of a full tile or bundle its first t.Width
// elements have; all of them if it is malformed, for the verifier to say so.
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
