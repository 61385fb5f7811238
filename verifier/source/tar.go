package source

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// TranscriptDir is the directory of the transcript in an exported room.
const TranscriptDir = "transcript/"

// TarFile is a tar archive that is read in place: opening it reads the names of its files, and no content. It is safe
// for concurrent use.
type TarFile struct {
	name  string
	from  io.ReaderAt
	files map[string]span
}

// span is where the content of a file is in an archive.
type span struct{ offset, size int64 }

// OpenTar opens a tar archive. The caller must close the file after the last use.
func OpenTar(name string) (*TarFile, io.Closer, error) {
	file, err := os.Open(name) //nolint:gosec // named by the user
	if err != nil {
		return nil, nil, fmt.Errorf("open archive: %w", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("open archive: %s: %w: not a file", name, ErrArchive)
	default:
		var t *TarFile
		if t, err = ReadTar(file, info.Size(), name); err == nil {
			return t, file, nil
		}
	}
	return nil, nil, errors.Join(err, file.Close())
}

// ReadTar reads the names in a tar archive of a size. It fails with [ErrArchive] on one that is malformed or cut off,
// has paths outside of itself, a file twice, or anything but files and directories. The name is for errors.
func ReadTar(from io.ReaderAt, size int64, name string) (*TarFile, error) {
	t := &TarFile{name: name, from: from, files: map[string]span{}}
	refuse := func(format string, args ...any) (*TarFile, error) {
		return nil, fmt.Errorf("open archive: %s: %w: %w", name, ErrArchive, fmt.Errorf(format, args...))
	}
	section := io.NewSectionReader(from, 0, size)
	archive := tar.NewReader(section)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return refuse("%w", err)
		}
		at, err := section.Seek(0, io.SeekCurrent)
		if err != nil {
			return refuse("%w", err)
		}
		if h.Typeflag == tar.TypeDir && h.Size == 0 && fs.ValidPath(strings.TrimSuffix(h.Name, "/")) {
			continue
		}
		_, isTwice := t.files[h.Name]
		switch {
		case !fs.ValidPath(h.Name) || strings.Contains(h.Name, `\`):
			return refuse("it names %.200q", h.Name)
		case isTwice:
			return refuse("it has %.200q twice", h.Name)
		case h.Typeflag != tar.TypeReg || isSparse(h):
			return refuse("%.200q is not a file", h.Name)
		case h.Size < 0 || h.Size > size-at:
			return refuse("%.200q is cut off", h.Name)
		case len(t.files) == maxArchived:
			return refuse("more than %d files", maxArchived)
		}
		t.files[h.Name] = span{at, h.Size}
	}
}

// isSparse reports whether a file is stored without its holes, so that it is not what the archive has at its place.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Names returns the names of all files, sorted.
func (t *TarFile) Names() []string { return slices.Sorted(maps.Keys(t.files)) }

// Read returns a file of at most bound bytes.
func (t *TarFile) Read(path string, bound int64) ([]byte, error) {
	f, ok := t.files[path]
	if !ok {
		return nil, fmt.Errorf("read %s in %s: %w", path, t.name, fs.ErrNotExist)
	}
	if f.size > bound {
		return nil, fmt.Errorf("read %s in %s: %w: %d bytes, at most %d", path, t.name, ErrTooLarge, f.size, bound)
	}
	b := make([]byte, f.size)
	if n, err := t.from.ReadAt(b, f.offset); n < len(b) {
		return nil, fmt.Errorf("read %s in %s: %w", path, t.name, err)
	}
	return b, nil
}

// Log returns the log in a directory of the archive, such as [TranscriptDir].
func (t *TarFile) Log(dir string) verifier.Source { return tarSource{t, dir} }

// tarTranscript returns the transcript in an exported room. The file stays open as long as the source is in use.
func tarTranscript(name string) (verifier.Source, error) {
	t, file, err := OpenTar(name)
	if err != nil {
		return nil, err
	}
	if _, ok := t.files[TranscriptDir+CheckpointPath]; !ok {
		return nil, errors.Join(fmt.Errorf("open archive: %s: %w: no %s in it", name, ErrNoTranscript,
			TranscriptDir+CheckpointPath), file.Close())
	}
	return t.Log(TranscriptDir), nil
}

// tarSource is a log in a directory of an archive.
type tarSource struct {
	archive *TarFile
	dir     string
}

// Checkpoint implements [verifier.Source].
func (s tarSource) Checkpoint(context.Context) ([]byte, error) {
	return s.file(CheckpointPath, maxCheckpoint)
}

// Tile implements [verifier.Source].
func (s tarSource) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return tile(t, s.file)
}

// file implements copied.
func (s tarSource) file(path string, bound int64) ([]byte, error) {
	return s.archive.Read(s.dir+path, bound)
}
