package export

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/verifier/source"
)

// Progress is called with the number of entries done; nil: not called.
type Progress func(done, total uint64)

// Write writes the export of a room. The same room and the same log of rooms give the same bytes. Errors:
// [room.ErrNotFound], [ErrNotOver], [ErrRehearsal], [ErrImported], [ErrHeld], and those of the database and the writer.
func Write(ctx context.Context, rs *room.Rooms, slug string, to io.Writer, progress Progress) error {
	record, err := rs.Store.Get(ctx, slug)
	if errors.Is(err, pgroom.ErrNotFound) {
		return room.ErrNotFound
	}
	if err != nil {
		return err
	}
	switch {
	case record.RehearsalOf != nil:
		return ErrRehearsal
	case record.VKey != nil:
		return ErrImported
	case record.Ended == nil:
		return ErrNotOver
	}
	rec, err := rs.Recover(ctx, slug) // reads the whole log, and compares it with the marks
	switch {
	case err != nil:
		return err
	case rec.By != "" && rec.Statement == "":
		return ErrHeld
	}
	w := &writer{tar: tar.NewWriter(to), rooms: rs, progress: progress, origin: record.Origin, sign: rec.Sign}
	signed, err := rs.Logs.Newest(ctx, record.ID)
	if err == nil {
		err = w.log(ctx, source.TranscriptDir, record.ID, signed, rec.VKey())
	}
	if err != nil {
		return fmt.Errorf("export room %s: %w", slug, err)
	}
	out := Record{Format: recordFormat, Slug: slug, Title: record.Title, Statement: rec.Statement}
	roomsKey, err := w.register(ctx)
	if err == nil {
		err = errors.Join(w.record(ctx, record.ID, out, roomsKey), w.tar.Close())
	}
	if err != nil {
		return fmt.Errorf("export room %s: %w", slug, err)
	}
	return nil
}

// writer writes the files of an export.
type writer struct {
	tar      *tar.Writer
	rooms    *room.Rooms
	progress Progress
	origin   string
	sign     func(text string) ([]byte, error)
	messages [][fairness.HashSize]byte // of the transcript, in order
}

// file writes a file. All files have the same time and mode, so that the archive depends on nothing else.
func (w *writer) file(name string, content []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR})
	if err == nil {
		_, err = w.tar.Write(content)
	}
	return err
}

// log writes a log into a directory.
func (w *writer) log(ctx context.Context, dir string, id uuid.UUID, signed []byte, vkey string) error {
	head, err := audit.UnverifiedCheckpoint(signed)
	if err != nil {
		return err
	}
	err = errors.Join(w.file(dir+source.CheckpointPath, signed), w.file(dir+source.VKeyPath, []byte(vkey+"\n")))
	if err != nil {
		return err
	}
	for t := range audit.Tiles(head.Size) {
		content, err := w.rooms.Logs.Tile(ctx, id, t)
		if err == nil && t.Level < 0 && dir == source.TranscriptDir {
			err = w.note(content, t.Width)
			if w.progress != nil {
				w.progress(t.Index*audit.TileWidth+uint64(t.Width), head.Size) //nolint:gosec // at most 256
			}
		}
		if err == nil {
			err = w.file(dir+t.Path(), content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Path(), err)
		}
	}
	return nil
}

// note collects the messages of a bundle.
func (w *writer) note(bundle []byte, width int) error {
	return audit.SplitBundle(bundle, width, func(text []byte) error {
		if !bytes.HasPrefix(text, []byte(fairness.KindAmend)) {
			return nil
		}
		e, err := fairness.ParseEntry(text)
		if err == nil {
			w.messages = appendMessage(w.messages, e)
		}
		return err
	})
}

// appendMessage appends the hash of a message that an entry is the first to have.
func appendMessage(list [][fairness.HashSize]byte, e fairness.Entry) [][fairness.HashSize]byte {
	a, ok := e.(*fairness.Amend)
	if !ok || a.Message == [fairness.HashSize]byte{} {
		return list
	}
	for _, known := range list {
		if known == a.Message {
			return list
		}
	}
	return append(list, a.Message)
}

// register writes the log of rooms, and returns its key.
func (w *writer) register(ctx context.Context) (vkey string, err error) {
	signed, err := w.rooms.Register.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	if vkey, err = w.rooms.Register.VKey(ctx); err != nil {
		return "", err
	}
	return vkey, w.log(ctx, roomsDir, pgroom.RegisterID, signed, vkey)
}

// record adds settings and messages to the record, signs and writes it.
func (w *writer) record(ctx context.Context, id uuid.UUID, r Record, roomsKey string) error {
	stored, err := w.rooms.Store.Settings(ctx, id)
	if err != nil {
		return err
	}
	var settings room.Settings
	if stored.Version > 0 {
		if err := json.Unmarshal(stored.JSON, &settings); err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
	}
	r.Settings, r.Messages = settings.Published(), []string{}
	for _, hash := range w.messages {
		text, err := w.rooms.Store.Message(ctx, id, hash)
		if err != nil {
			return fmt.Errorf("message %x: %w", hash, err)
		}
		r.Messages = append(r.Messages, text)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	signed, err := w.sign(signedText(w.origin, text, roomsKey))
	if err != nil {
		return err
	}
	return errors.Join(w.file(recordPath, text), w.file(signaturePath, signed))
}
