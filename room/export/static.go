package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// Archive is a directory with the transcripts of rooms as static files, each in a directory that is named after the
// room. It is a [pglog.Archive].
type Archive string

// Of returns the directory of a room's transcript.
func (a Archive) Of(slug string) string { return filepath.Join(string(a), slug) }

// Tile implements [pglog.Archive].
func (a Archive) Tile(ctx context.Context, slug string, t audit.Tile) ([]byte, error) {
	if !setting.IsSlug(slug) {
		return nil, fmt.Errorf("%w: %.80q", source.ErrNoTranscript, slug)
	}
	src, err := source.Dir(a.Of(slug))
	if err != nil {
		return nil, err
	}
	return src.Tile(ctx, t)
}

// Write writes the transcript of a room that is over, or completes what an earlier call has written, has the disk store
// it, and audits what it reads back. It returns the mark of the transcript. Errors: [room.ErrNotFound], [ErrNotOver],
// [ErrHeld], [ErrFile] if what it reads back is wrong, those of [source.Store], and those of the database.
func (a Archive) Write(ctx context.Context, rs *room.Rooms, slug string,
	progress Progress) (id uuid.UUID, m pglog.Mark, err error) {
	record, err := rs.Store.Get(ctx, slug)
	switch {
	case errors.Is(err, pgroom.ErrNotFound):
		return id, m, room.ErrNotFound
	case err != nil:
		return id, m, err
	case record.Ended == nil:
		return id, m, ErrNotOver
	}
	rec, err := rs.Recover(ctx, slug)
	switch {
	case err != nil:
		return id, m, err
	case rec.By != "" && rec.Statement == "":
		return id, m, ErrHeld
	}
	signed, err := rs.Logs.Newest(ctx, record.ID)
	if err != nil {
		return id, m, err
	}
	dir := a.Of(slug)
	if _, err := source.Store(ctx, storedLog{rs.Logs, record.ID, signed}, dir, nil); err != nil {
		return id, m, err
	}
	if err := syncAll(dir); err != nil {
		return id, m, err
	}
	src, err := source.Dir(dir)
	if err != nil {
		return id, m, err
	}
	c := checker{Checked: Checked{source: src}}
	if err := c.audit(ctx, progress); err != nil {
		return id, m, fmt.Errorf("%s: %w: %w", dir, ErrFile, err)
	}
	if c.head.Size != rec.Has.Size || c.head.Root != rec.Has.Root {
		return id, m, fmt.Errorf("%s: %w: it has %d entries, and the database %d", dir, ErrFile, c.head.Size,
			rec.Has.Size)
	}
	return record.ID, rec.Has, nil
}

// storedLog is a log in the database as a source to copy.
type storedLog struct {
	logs   *pglog.Store
	id     uuid.UUID
	signed []byte
}

var _ verifier.Source = storedLog{}

// Checkpoint implements [verifier.Source].
func (s storedLog) Checkpoint(context.Context) ([]byte, error) { return s.signed, nil }

// Tile implements [verifier.Source].
func (s storedLog) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	return s.logs.Tile(ctx, s.id, t)
}

// syncAll has the disk store a directory, everything in it, and its name.
func syncAll(dir string) error {
	flush := func(name string) error {
		f, err := os.Open(name) //nolint:gosec // in the directory that the operator named
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	}
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return flush(name)
	})
	return errors.Join(err, flush(filepath.Dir(dir)))
}
