package control

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/report"
)

const (
	// auditTimeout limits the duration of an audit on the server.
	auditTimeout = 10 * time.Minute
	// MaxAudited is the size of the longest transcript that a server audits itself, because an audit
	// needs about 100 bytes of memory per entry.
	MaxAudited = 5_000_000 // entries
)

var (
	// ErrNotOver means that the room to report on has not ended.
	ErrNotOver = errors.New("only a room that has ended can be audited and reported on")
	// ErrAuditing means that another audit is running: a server runs one at a time.
	ErrAuditing = errors.New("another audit is running: try again when it is done")
	// ErrTooLong means that a transcript is longer than [MaxAudited].
	ErrTooLong = errors.New("the transcript is too long to be audited on the server: " +
		"run proofline-verify audit on another machine")
)

// Reports audits rooms that have ended, and publishes what the audits found. It is safe for concurrent use.
type Reports struct {
	rooms    *Rooms
	auditing atomic.Bool // whether an audit is running
}

// Publish starts an audit of a room that has ended, and publishes the report below the room's
// address. The audit reads the room's published data, with the code that auditors use. The channel
// receives the outcome. Errors: [account.ErrForbidden], [room.ErrNotFound], [ErrNotOver],
// [ErrAuditing], [ErrTooLong].
func (p *Reports) Publish(ctx context.Context, actor account.Actor, slug string) (<-chan error, error) {
	r, err := p.rooms.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return nil, err
	}
	switch s := r.Snapshot(); {
	case !s.Ended:
		return nil, ErrNotOver
	case s.Size > MaxAudited:
		return nil, ErrTooLong
	case !p.auditing.CompareAndSwap(false, true):
		return nil, ErrAuditing
	}
	done := make(chan error, 1)
	go func() {
		defer p.auditing.Store(false)
		// The audit continues after the request ends.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
		defer cancel()
		err := p.rooms.Activity.Do(ctx, actor, "room.report", slug, nil, func() error { return p.audit(ctx, r) })
		if err != nil {
			p.rooms.Log.Error("cannot publish the audit report", "room", slug, "err", err)
		}
		done <- err
	}()
	return done, nil
}

// Of returns the time and level of a room's report, and whether the room has one.
func (p *Reports) Of(ctx context.Context, r *room.Room) (pgroom.Report, bool, error) {
	head, err := p.rooms.Records.ReportHead(ctx, r.ID)
	if errors.Is(err, pgroom.ErrNotFound) {
		return head, false, nil
	}
	return head, err == nil, err
}

// audit audits a room and stores the page.
func (p *Reports) audit(ctx context.Context, r *room.Room) error {
	checkpoint, err := r.Transcript.Checkpoint(ctx)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	trust := verifier.Trust{VKey: r.VKey}
	settings, _ := r.Settings()
	made := &report.Audit{
		Title: r.Snapshot().Title, Zone: settings.Zone(), Trust: trust, Checkpoint: checkpoint,
		Source: r.URL, Command: "proofline-verify audit " + r.URL + " --vkey '" + r.VKey + "'",
		Program: "the room's own server", Time: time.Now(),
	}
	if p.rooms.OrganizerName != nil {
		made.Organizer = p.rooms.OrganizerName(ctx, r.Owner.Org)
	}
	recorder := report.Record(published{r.Transcript, checkpoint})
	var finder findings.Finder
	trust.OnEntry = finder.Add
	if made.Report, err = verifier.Audit(ctx, recorder, trust); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if size := r.Snapshot().Size; made.Report.Entries != size {
		return fmt.Errorf("only %d of %d entries are published yet: try again in a moment", made.Report.Entries, size)
	}
	made.Story, made.Findings = recorder.Story(), finder.Findings()
	var page bytes.Buffer
	compressed := gzip.NewWriter(&page)
	if err := errors.Join(report.Write(compressed, made), compressed.Close()); err != nil {
		return err
	}
	return p.rooms.Records.SetReport(ctx, r.ID, pgroom.Report{
		Made: made.Time, Entries: made.Report.Entries, Level: made.Report.Level, HTML: page.Bytes(),
	})
}

// published is a room's published data as of one checkpoint.
type published struct {
	room.Transcript
	checkpoint []byte
}

// Checkpoint implements [verifier.Source].
func (p published) Checkpoint(context.Context) ([]byte, error) { return p.checkpoint, nil }
