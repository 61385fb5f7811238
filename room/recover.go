package room

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

var (
	// ErrOtherHistory is returned for a copy that is not a copy of the room's transcript.
	ErrOtherHistory = errors.New("the copy is of another history")
	// ErrTooShort is returned for a copy that also lacks published entries.
	ErrTooShort = errors.New("the copy lacks entries, too")
	// ErrComplete is returned when the operator ends a room as lost that is not held.
	ErrComplete = errors.New("the room is not held: nothing is known to be missing")
)

// recoverChunk is the number of entries stored at once.
const recoverChunk = 8_192

// Recovery is an operator's work on a held room.
type Recovery struct {
	Regression // what is missing, as far as known here; By is empty if nothing is known to be missing

	rooms  *Rooms
	record pgroom.Room
	keys   *keys.Keys
	hold   pglog.Hold
	live   *live  // of the database's log
	lacks  []Mark // marks that the log must continue
}

// Mark is the size and root of a log that was seen.
type Mark = pglog.Mark

// Copy passes the entries of a transcript to read, in order, after checking them against the copy's
// checkpoint.
type Copy func(ctx context.Context, read func(entry []byte) error) error

// Loss is the part of a copy that the database lacks.
type Loss struct {
	From, To uint64 // entries from From to before To
	Kinds    map[fairness.Kind]int
	Tickets  []fairness.Ticket // tickets that joined
	Admitted []fairness.Ticket // tickets whose claims were answered
	entries  [][]byte
}

// Recover examines a held room. It changes nothing.
func (rs *Rooms) Recover(ctx context.Context, slug string) (*Recovery, error) {
	record, err := rs.Options.Rooms.Get(ctx, slug)
	if err != nil {
		return nil, err
	}
	sealed, err := rs.Options.Rooms.Keys(ctx, record.ID)
	if err != nil {
		return nil, err
	}
	rec := &Recovery{rooms: rs, record: record}
	if rec.keys, err = keys.Open(rs.MasterKey, record, sealed); err != nil {
		return nil, err
	}
	if _, rec.hold, err = rs.Logs.State(ctx, record.ID); err != nil {
		return nil, err
	}
	rec.live = &live{State: &fairness.State{}, log: rs.Logs.Recover(record.ID, record.Origin, rec.keys.Log)}
	if err := rec.live.log.Tail(ctx, rec.live.read); err != nil {
		return nil, err
	}
	rec.Has = Mark{Size: rec.live.log.Size(), Root: rec.live.log.Root()}
	rec.Statement = rec.hold.Ended
	if rec.hold.By != "" {
		rec.lacks, rec.Had, rec.By = append(rec.lacks, rec.hold.Mark), rec.hold.Mark, rec.hold.By
	}
	for log, m := range rs.Marks.All() {
		if log.Slug == slug && log.Key == rec.keys.Log.KeyHash() {
			rec.lacks = append(rec.lacks, m)
			if m.Size > rec.Has.Size && m.Size > rec.Had.Size {
				rec.Had, rec.By = m, "this directory's marks"
			}
		}
	}
	return rec, nil
}

// VKey returns the key that verifies the room's checkpoints.
func (rec *Recovery) VKey() string { return rec.keys.VKey }

// Compare reads a copy and returns the part that the database lacks. Errors: [ErrOtherHistory],
// [ErrTooShort], and those of the copy.
func (rec *Recovery) Compare(ctx context.Context, read Copy) (*Loss, error) {
	loss := &Loss{From: rec.Has.Size, Kinds: map[fairness.Kind]int{}}
	tree := &audit.Tree{}
	var parser fairness.Parser
	check := func() error {
		for _, m := range append(rec.lacks, rec.Has) {
			if m.Size == tree.Size() && m.Root != (audit.Hash{}) && m.Root != tree.Root() {
				return fmt.Errorf("%w: it differs before entry %d", ErrOtherHistory, m.Size)
			}
		}
		return nil
	}
	err := read(ctx, func(text []byte) error {
		if err := check(); err != nil {
			return err
		}
		if tree.Size() >= rec.Has.Size {
			e, err := parser.Parse(text)
			if err != nil {
				return err
			}
			loss.add(e, text)
		}
		tree.Append(audit.LeafHash(text))
		return nil
	})
	if err == nil {
		err = check()
	}
	if err != nil {
		return nil, err
	}
	loss.To = tree.Size()
	for _, m := range append(rec.lacks, rec.Has) {
		if tree.Size() < m.Size {
			return loss, fmt.Errorf("%w: it has %d of %d published entries", ErrTooShort, tree.Size(), m.Size)
		}
	}
	return loss, nil
}

func (l *Loss) add(e fairness.Entry, text []byte) {
	l.entries = append(l.entries, append([]byte(nil), text...))
	l.Kinds[e.Kind()]++
	switch e := e.(type) {
	case *fairness.Arrive:
		l.Tickets = append(l.Tickets, e.Ticket)
	case *fairness.Admit:
		l.Admitted = append(l.Admitted, e.Ticket)
	}
}

// Continue stores the missing entries unchanged and releases the room, so that the servers continue it.
func (rec *Recovery) Continue(ctx context.Context, loss *Loss) error {
	for entries := loss.entries; len(entries) > 0; {
		n := min(len(entries), recoverChunk)
		_, err := rec.live.log.Append(ctx, rec.live.read, func(b *pglog.Batch) error {
			if rec.live.log.Size() != loss.To-uint64(len(entries)) {
				return fmt.Errorf("%w: another process appends", ErrOtherHistory)
			}
			for _, text := range entries[:n] {
				e, err := rec.live.parser.Parse(text)
				if err == nil {
					err = rec.live.apply(e, b.Root)
				}
				if err == nil {
					err = b.Add(text)
				}
				if err != nil {
					return err
				}
			}
			b.Publish()
			return nil
		})
		if err != nil {
			return fmt.Errorf("recover room %s: %w", rec.record.Slug, err)
		}
		entries = entries[n:]
	}
	return rec.rooms.Logs.Release(ctx, rec.record.ID, 0)
}

// Overrule lets the room continue although a witness claims to have seen another log: its claims about sizes
// up to the one that it named no longer count.
func (rec *Recovery) Overrule(ctx context.Context) error {
	return rec.rooms.Logs.Release(ctx, rec.record.ID, rec.hold.Size)
}

// statementHead is the number of lines in a statement before the operator's words.
const statementHead = 4

// End ends the room for good and returns a statement signed with the key of its log. The log itself stays as
// it is: continuing it would create a second history.
func (rec *Recovery) End(ctx context.Context, words string) (string, error) {
	if rec.By == "" {
		return "", ErrComplete
	}
	shown := "unknown"
	if rec.HasRoot() {
		shown = rec.Had.Root.String()
	}
	text := fmt.Sprintf("proofline.dev/ended-with-loss\n%s\n%d %v\n%d %s\n%s\n", rec.record.Origin, rec.Has.Size,
		rec.Has.Root, rec.Had.Size, shown, words)
	signed, err := note.Sign(&note.Note{Text: text}, rec.keys.Log)
	if err != nil {
		return "", fmt.Errorf("sign statement: %w", err)
	}
	if err := rec.rooms.Logs.Abandon(ctx, rec.record.ID, string(signed)); err != nil {
		return "", err
	}
	return string(signed), rec.rooms.Options.Rooms.MarkEnded(ctx, rec.record.ID)
}
