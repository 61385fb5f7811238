package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/rooms"
	"github.com/proofline/proofline/verifier/source"
	"golang.org/x/mod/sumdb/note"
)

// Checked is an export that has passed all checks.
type Checked struct {
	Record
	Report  *verifier.Report
	Origin  string
	VKey    string
	Created time.Time
	Ended   time.Time // as the log of rooms says
	IsLost  bool      // it ended because entries are lost
	// Server is the origin of the log of rooms of the old server, and ServerVKey verifies that log.
	Server     string
	ServerVKey string

	head   audit.Checkpoint
	signed []byte
	first  audit.Hash // leaf hash of the first entry
	last   fairness.Time
	source verifier.Source
}

// Check audits an export, and compares every file in it with what is signed. It returns [ErrFile] if anything is
// missing, unproven, changed or superfluous, and says what.
func Check(ctx context.Context, file *source.TarFile, progress Progress) (*Checked, error) {
	c := &checker{file: file, Checked: Checked{source: file.Log(source.TranscriptDir)}}
	for _, step := range []func(context.Context) error{
		c.readRecord, func(ctx context.Context) error { return c.audit(ctx, progress) }, c.checkEnd, c.checkRegister,
		c.checkTimes, c.checkMessages, c.checkNames,
	} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
	}
	return &c.Checked, nil
}

// checker checks one export.
type checker struct {
	Checked
	file     *source.TarFile
	record   []byte
	isEnded  bool
	messages [][fairness.HashSize]byte // of the transcript
	register audit.Checkpoint          // of the log of rooms
}

func (c *checker) readRecord(context.Context) error {
	var err error
	if c.record, err = c.file.Read(recordPath, maxRecord); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(c.record))
	d.DisallowUnknownFields()
	if err := d.Decode(&c.Record); err != nil {
		return fmt.Errorf("%s: %w", recordPath, err)
	}
	if c.Format != recordFormat {
		return fmt.Errorf("%s has the format %.80q, not %q: it is of another version of proofline", recordPath, c.Format,
			recordFormat)
	}
	problems := append(setting.Check("slug", c.Slug), setting.Check("title", c.Title)...)
	if err := append(problems, c.Settings.Problems()...).Err(); err != nil {
		return fmt.Errorf("%s: %w", recordPath, err)
	}
	c.Settings = c.Settings.Published()
	return nil
}

// audit runs the auditor's checks, and those of a copy.
func (c *checker) audit(ctx context.Context, progress Progress) error {
	var err error
	if c.signed, err = c.source.Checkpoint(ctx); err != nil {
		return err
	}
	copied := source.NewCopyCheck(c.source)
	trust := verifier.Trust{Progress: progress, OnBundle: copied.OnBundle}
	trust.OnEntry = func(s *fairness.State, e fairness.Entry) {
		if r, ok := e.(*fairness.Room); ok {
			c.first = audit.LeafHash(fairness.AppendEntry(nil, r))
			c.VKey, c.Origin, c.Created = r.LogKey, r.Origin, millis.Time(r.Created)
		}
		c.messages = appendMessage(c.messages, e)
		c.isEnded, c.last = s.Ended(), s.Now()
	}
	if c.Report, err = verifier.Audit(ctx, c.source, trust); err != nil {
		return err
	}
	for _, check := range c.Report.Checks {
		if check.Status == verifier.Fail {
			return fmt.Errorf("the audit of its transcript fails: %s: %s", check.Title, check.Detail)
		}
	}
	if !c.Report.OK {
		return errors.New("the audit of its transcript fails")
	}
	_, unchecked, err := copied.Finish(ctx)
	if err == nil && len(unchecked) > 0 {
		err = errors.New(strings.Join(unchecked, "; "))
	}
	if err == nil {
		c.head, err = audit.UnverifiedCheckpoint(c.signed)
	}
	return err
}

// checkEnd checks that no entry can follow.
func (c *checker) checkEnd(context.Context) error {
	if c.Statement == "" {
		if !c.isEnded {
			return fmt.Errorf("%w: its transcript has no end", ErrNotOver)
		}
		return nil
	}
	c.IsLost = true
	return regression.CheckStatement(c.Statement, c.VKey, pglog.Mark{Size: c.head.Size, Root: c.head.Root})
}

// checkRegister checks what the log of rooms says about the room.
func (c *checker) checkRegister(ctx context.Context) error {
	src := c.file.Log(roomsDir)
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return err
	}
	log := rooms.Log{}
	if log.Published, err = roomlog.Read(ctx, src.Tile, signed, ""); err != nil {
		return err
	}
	vkey, err := c.file.Read(roomsDir+source.VKeyPath, maxKey)
	if err == nil && string(vkey) != log.VKey()+"\n" {
		err = fmt.Errorf("%s%s has another key than the log of rooms", roomsDir, source.VKeyPath)
	}
	if err != nil {
		return err
	}
	found, err := log.Judge(ctx,
		rooms.Audited{Source: c.source, Origin: c.Origin, Checkpoint: c.signed, IsEnded: c.isEnded})
	if err != nil {
		return err
	}
	listed := log.Of(c.Origin)
	switch {
	case found.ID != rooms.Listed:
		return fmt.Errorf("%s: %s", found.Title, found.Text)
	case listed.Ended == 0:
		return fmt.Errorf("%w: the log of rooms of its server does not have its end", ErrNotOver)
	case listed.IsLost != c.IsLost:
		return errors.New("the log of rooms and the operator's statement disagree whether entries are lost")
	case listed.IsRehearsal:
		return ErrRehearsal
	}
	c.register, c.Server, c.ServerVKey = log.Head, log.Head.Origin, log.VKey()
	c.Ended = time.UnixMilli(listed.Ended).UTC()
	return c.checkSignature(c.ServerVKey)
}

// checkSignature checks that the key of the transcript has signed the record and the key of the log of rooms.
func (c *checker) checkSignature(roomsKey string) error {
	signed, err := c.file.Read(signaturePath, maxKey)
	if err != nil {
		return err
	}
	key, err := audit.ParseKey(c.VKey)
	if err != nil {
		return err
	}
	n, err := note.Open(signed, note.VerifierList(key))
	if err == nil && (n.Text != signedText(c.Origin, c.record, roomsKey) || len(n.UnverifiedSigs) > 0) {
		err = fmt.Errorf("it is for another %s or another log of rooms", recordPath)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", signaturePath, err)
	}
	return nil
}

// maxAhead is how far the clock of the old server may be ahead.
const maxAhead = 24 * time.Hour

// checkTimes checks that nothing happened in the future.
func (c *checker) checkTimes(context.Context) error {
	limit := time.Now().Add(maxAhead)
	for _, happened := range []struct {
		what string
		at   time.Time
	}{
		{"the room was created", c.Created}, {"its last entry was added", millis.Time(c.last)},
		{"it ended, says the log of rooms,", c.Ended},
	} {
		if happened.at.After(limit) {
			return fmt.Errorf("%s in the future: %s", happened.what, happened.at.Format(time.RFC3339))
		}
	}
	return nil
}

// maxKey is the maximum size of the file of a key.
const maxKey = 1 << 10

// checkMessages checks that the record has the messages of the transcript.
func (c *checker) checkMessages(context.Context) error {
	if len(c.Messages) != len(c.messages) {
		return fmt.Errorf("%s has %d messages, and the transcript %d", recordPath, len(c.Messages), len(c.messages))
	}
	for i, text := range c.Messages {
		if sha256.Sum256([]byte(text)) != c.messages[i] {
			return fmt.Errorf("message %d in %s is not the one in the transcript", i, recordPath)
		}
		if _, err := room.ParseMessage(text); err != nil {
			return fmt.Errorf("message %d in %s: %w", i, recordPath, err)
		}
	}
	return nil
}

// checkNames checks that there are no other files than those that were checked.
func (c *checker) checkNames(context.Context) error {
	want := map[string]bool{recordPath: true, signaturePath: true}
	for dir, head := range map[string]audit.Checkpoint{source.TranscriptDir: c.head, roomsDir: c.register} {
		want[dir+source.CheckpointPath], want[dir+source.VKeyPath] = true, true
		for t := range audit.Tiles(head.Size) {
			want[dir+t.Path()] = true
		}
	}
	names := c.file.Names()
	if i := slices.IndexFunc(names, func(name string) bool { return !want[name] }); i >= 0 {
		return fmt.Errorf("it has a file that nothing proves: %.200q", names[i])
	}
	return nil
}
