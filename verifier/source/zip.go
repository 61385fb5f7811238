package source

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// ErrArchive is returned for an archive that cannot be that of a transcript: it is malformed, has
// paths outside of itself or one file twice, or would unpack to far more than a transcript.
var ErrArchive = errors.New("not an archive of a transcript")

// Limits for archives. Hashes do not compress, and entries compress to about a third.
const (
	maxArchived    = 2_000_000 // files; a transcript has one or two per 256 entries
	maxCompression = 50        // bytes of content per byte of the archive
)

type zipSource struct {
	name  string
	files map[string]*zip.File // files by path relative to the transcript
}

// Zip returns the log in a zip archive, in its only directory with a
// checkpoint. The file stays open as long as the source is in use.
func Zip(name string) (verifier.Source, error) {
	file, err := os.Open(name) //nolint:gosec // named by the user
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	src, err := readArchive(file, name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open archive: %s: %w", name, err), file.Close())
	}
	return src, nil
}

func readArchive(file *os.File, name string) (verifier.Source, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a file", ErrArchive)
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	all, err := archived(archive, uint64(info.Size()))
	if err != nil {
		return nil, err
	}
	root, err := findArchived(all)
	if err != nil {
		return nil, err
	}
	s := &zipSource{name, map[string]*zip.File{}}
	for path, f := range all {
		if below, ok := strings.CutPrefix(path, root); ok {
			s.files[below] = f
		}
	}
	return s, nil
}

// archived returns the files of an archive by path, after checking its limits.
func archived(archive *zip.Reader, size uint64) (map[string]*zip.File, error) {
	if len(archive.File) > maxArchived {
		return nil, fmt.Errorf("%w: %d files, at most %d", ErrArchive, len(archive.File), maxArchived)
	}
	all := map[string]*zip.File{}
	var packed, unpacked uint64
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") && fs.ValidPath(strings.TrimSuffix(f.Name, "/")) &&
			f.UncompressedSize64 == 0 {
			continue
		}
		switch {
		case !fs.ValidPath(f.Name) || strings.Contains(f.Name, `\`):
			return nil, fmt.Errorf("%w: it names %.200q", ErrArchive, f.Name)
		case all[f.Name] != nil:
			return nil, fmt.Errorf("%w: it has %.200q twice", ErrArchive, f.Name)
		case !f.Mode().IsRegular():
			return nil, fmt.Errorf("%w: %.200q is not a file", ErrArchive, f.Name)
		case f.CompressedSize64 > size || f.UncompressedSize64 > size*maxCompression:
			return nil, fmt.Errorf("%w: %.200q is too large for it", ErrArchive, f.Name)
		}
		packed, unpacked = packed+f.CompressedSize64, unpacked+f.UncompressedSize64
		if packed > size || unpacked > size*maxCompression { // overlapping files, or a zip bomb
			return nil, fmt.Errorf("%w: it would unpack to far more than a transcript", ErrArchive)
		}
		all[f.Name] = f
	}
	return all, nil
}

// findArchived returns the directory of the only transcript, with a trailing slash unless it is the
// root.
func findArchived(all map[string]*zip.File) (string, error) {
	root, found := "", false
	for name := range all {
		if path.Base(name) != CheckpointPath || strings.Count(name, "/") >= maxDepth {
			continue
		}
		if found {
			return "", fmt.Errorf("%w: several", ErrNoTranscript)
		}
		root, found = strings.TrimSuffix(name, CheckpointPath), true
	}
	if !found {
		return "", fmt.Errorf("%w: no checkpoint in it", ErrNoTranscript)
	}
	return root, nil
}

// Checkpoint implements [verifier.Source].
func (s *zipSource) Checkpoint(context.Context) ([]byte, error) {
	return s.read(CheckpointPath, maxCheckpoint)
}

// Tile implements [verifier.Source].
func (s *zipSource) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return tile(t, s.read)
}

// file implements copied.
func (s *zipSource) file(path string, bound int64) ([]byte, error) { return s.read(path, bound) }

// read reads a file of at most bound bytes; the zip package checks its checksum.
func (s *zipSource) read(path string, bound int64) ([]byte, error) {
	f, ok := s.files[path]
	if !ok {
		return nil, fmt.Errorf("read %s in %s: %w", path, s.name, fs.ErrNotExist)
	}
	if f.UncompressedSize64 > uint64(bound) {
		return nil, fmt.Errorf("read %s in %s: %w: %d bytes, at most %d", path, s.name, ErrTooLarge,
			f.UncompressedSize64, bound)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", path, s.name, err)
	}
	defer func() { _ = r.Close() }() // only read
	b := make([]byte, f.UncompressedSize64)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", path, s.name, err)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) { // the checksum is checked at the end
		return nil, fmt.Errorf("read %s in %s: %w: it is too long, or its checksum is wrong", path, s.name, ErrArchive)
	}
	return b, nil
}
