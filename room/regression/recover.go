package regression

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
)

var (
	// ErrOtherHistory is returned for a copy that is not a copy of the room's transcript.
	ErrOtherHistory = errors.New("the copy is of another history")
	// ErrTooShort is returned for a copy that lacks published entries, like the database.
	ErrTooShort = errors.New("the copy lacks published entries, too")
	// ErrComplete is returned when the operator tries to end a room as lost that is not held.
	ErrComplete = errors.New("the room is not held: nothing is known to be missing")
)

// recoverChunk is the number of entries stored at once.
const recoverChunk = 8_192

// Recovery is an operator's work on a held room.
type Recovery struct {
	Regression // what is missing, as far as this node knows; By is empty if nothing is

	from   Sources
	slug   string
	signer note.Signer // its name is the log's origin
	vkey   string
	hold   pglog.Hold
	log    *pglog.Log
	apply  applies      // checks the entries that follow those of the database's log
	lacks  []pglog.Mark // marks that the log must continue
}

// applies applies the next entry of a log by its rules.
type applies func(text []byte, root func() audit.Hash) error

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

// Records reads rooms from the database and marks them as ended.
type Records interface {
	Get(ctx context.Context, slug string) (pgroom.Room, error)
	Keys(ctx context.Context, id uuid.UUID) ([]pgroom.Key, error)
	Register(ctx context.Context) (pgroom.Register, error)
	MarkEnded(ctx context.Context, id uuid.UUID) error
}

// Sources provides rooms, their logs and the marks of a node.
type Sources struct {
	Records   Records
	Logs      *pglog.Store
	Marks     *mark.Store
	MasterKey *keys.MasterKey
	// Lost records in the log of rooms that a room has ended because part of its transcript is lost.
	Lost func(ctx context.Context, origin string, has pglog.Mark) error
}

// signer returns the signer of a log, whose name is the log's origin, and its public key.
func (from *Sources) signer(ctx context.Context, slug string) (signer note.Signer, vkey string, err error) {
	if slug == pgroom.RegisterName {
		r, err := from.Records.Register(ctx)
		if err != nil {
			return nil, "", err
		}
		return keys.OpenRegister(from.MasterKey, r)
	}
	record, err := from.Records.Get(ctx, slug)
	if err != nil {
		return nil, "", err
	}
	sealed, err := from.Records.Keys(ctx, record.ID)
	if err != nil {
		return nil, "", err
	}
	k, err := keys.Open(from.MasterKey, record, sealed)
	if err != nil {
		return nil, "", err
	}
	return k.Log, k.VKey, nil
}

// Recover examines a held room, or the log of rooms under [pgroom.RegisterName]. It changes nothing.
func Recover(ctx context.Context, from Sources, slug string) (*Recovery, error) {
	rec := &Recovery{from: from, slug: slug}
	var err error
	if rec.signer, rec.vkey, err = from.signer(ctx, slug); err != nil {
		return nil, err
	}
	if _, rec.hold, err = from.Logs.State(ctx, rec.id()); err != nil {
		return nil, err
	}
	rec.apply = projection.New(nil, nil).Read
	if slug == pgroom.RegisterName {
		list := &roomlog.List{}
		rec.apply = func(text []byte, _ func() audit.Hash) error { return list.Add(text) }
	}
	rec.log = from.Logs.Recover(rec.id(), rec.signer.Name(), rec.signer)
	if err := rec.log.Tail(ctx, rec.read); err != nil {
		return nil, err
	}
	rec.Has = pglog.Mark{Size: rec.log.Size(), Root: rec.log.Root()}
	rec.Statement = rec.hold.Ended
	if rec.hold.By != "" {
		rec.lacks, rec.Had, rec.By = append(rec.lacks, rec.hold.Mark), rec.hold.Mark, rec.hold.By
	}
	for log, m := range from.Marks.All() {
		if log.Slug == slug && log.Key == rec.signer.KeyHash() {
			rec.lacks = append(rec.lacks, m)
			if m.Size > rec.Has.Size && m.Size > rec.Had.Size {
				rec.Had, rec.By = m, "this directory's marks"
			}
		}
	}
	m, err := from.Marks.Elsewhere(ctx, mark.Log{Slug: slug, Key: rec.signer.KeyHash()})
	if err != nil {
		return nil, fmt.Errorf("read mark: %w", err)
	}
	if !m.IsZero() {
		rec.lacks = append(rec.lacks, m)
		if m.Size > rec.Has.Size && m.Size > rec.Had.Size {
			rec.Had, rec.By = m, mark.RemoteName
		}
	}
	return rec, nil
}

func (rec *Recovery) id() uuid.UUID { return pgroom.RoomID(rec.slug) }

// read applies an entry of the database's log.
func (rec *Recovery) read(text []byte) error { return rec.apply(text, rec.log.Root) }

// VKey returns the key that verifies the room's checkpoints.
func (rec *Recovery) VKey() string { return rec.vkey }

// Sign signs a text, which is no checkpoint, with the key of the room's log.
func (rec *Recovery) Sign(text string) (signed []byte, err error) {
	return note.Sign(&note.Note{Text: text}, rec.signer)
}

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
			var e fairness.Entry
			var err error
			if rec.slug != pgroom.RegisterName {
				e, err = parser.Parse(text)
			}
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
	if e == nil { // of the log of rooms
		return
	}
	l.Kinds[fairness.KindOf(e)]++
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
		_, err := rec.log.Append(ctx, rec.read, func(b *pglog.Batch) error {
			if rec.log.Size() != loss.To-uint64(len(entries)) {
				return fmt.Errorf("%w: another process appends", ErrOtherHistory)
			}
			for _, text := range entries[:n] {
				if err := rec.apply(text, b.Root); err != nil {
					return err
				}
				if err := b.Add(text); err != nil {
					return err
				}
			}
			b.Publish()
			return nil
		})
		if err != nil {
			return fmt.Errorf("recover room %s: %w", rec.slug, err)
		}
		entries = entries[n:]
	}
	return rec.from.Logs.Release(ctx, rec.id(), 0)
}

// Overrule lets the room continue although a witness claims to have seen another log: from then on its claims
// about sizes up to the one it named are ignored.
func (rec *Recovery) Overrule(ctx context.Context) error {
	return rec.from.Logs.Release(ctx, rec.id(), rec.hold.Size)
}

// ErrStatement is returned for a text that is not the statement of a log's operator that the log has ended.
var ErrStatement = errors.New("not the operator's statement that the log has ended with loss")

// CheckStatement checks that a log's key has signed a statement of [Recovery.End], with has as what is left.
func CheckStatement(signed, vkey string, has pglog.Mark) error {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStatement, err)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(key))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStatement, err)
	}
	if !strings.HasPrefix(n.Text, statementBegin(key.Name(), has)) {
		return fmt.Errorf("%w: it does not say that %d entries with root %v are left", ErrStatement, has.Size, has.Root)
	}
	return nil
}

// statementBegin returns the first lines of a statement.
func statementBegin(origin string, has pglog.Mark) string {
	return fmt.Sprintf("proofline.dev/ended-with-loss\n%s\n%d %v\n", origin, has.Size, has.Root)
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
	text := statementBegin(rec.signer.Name(), rec.Has) + fmt.Sprintf("%d %s\n%s\n", rec.Had.Size, shown, words)
	signed, err := note.Sign(&note.Note{Text: text}, rec.signer)
	if err != nil {
		return "", fmt.Errorf("sign statement: %w", err)
	}
	if err := rec.from.Logs.Abandon(ctx, rec.id(), string(signed)); err != nil {
		return "", err
	}
	if rec.slug == pgroom.RegisterName {
		return string(signed), nil
	}
	err = rec.from.Records.MarkEnded(ctx, rec.id())
	if err == nil {
		err = rec.from.Lost(ctx, rec.signer.Name(), rec.Has)
	}
	return string(signed), err
}
