package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/projection"
)

// Load reads the room from its log into a new projection. It has no deadline, but gives up when the database stops
// responding. If the log lacks published entries, the error is a [*regression.Regression], and the view may show
// the entries that remain.
func (s *Sequencer) Load(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(appendTimeout, cancel)
	defer silence.Stop()
	wanted, err := s.o.Guard.Wanted(ctx)
	if err != nil {
		return fmt.Errorf("load room %s: %w", s.o.Slug, err)
	}
	p, entries := projection.New(s.o.Controls, s.o.Evidence), s.o.Store.Open(s.o.ID, s.o.Origin, s.o.Keys.Log)
	root := entries.Root
	entries.More = s.queue.hasWork
	replay := projection.Replay{Projection: p}
	err = entries.TailRuns(ctx, func(texts [][]byte, next func()) error {
		silence.Reset(appendTimeout)
		return replay.ReadRun(texts, root, func() {
			wanted.Note(entries.Size(), root)
			next()
		})
	})
	if err != nil {
		return fmt.Errorf("load room %s: %w", s.o.Slug, err)
	}
	wanted.Note(entries.Size(), root)
	isFirst := s.entries == nil
	if err := s.o.Guard.Check(ctx, wanted, pglog.Mark{Size: entries.Size(), Root: root()}); err != nil {
		s.keep(isFirst, p, entries)
		return err
	}
	silence.Stop()
	if isFirst && !s.o.Guard.IsMarked() && entries.Size() > 0 && !p.Ended() {
		s.o.Consult(ctx, p)
		if err := s.o.Guard.Err(); err != nil {
			s.keep(isFirst, p, entries)
			return err
		}
	}
	if err := errors.Join(s.o.Store.Confirm(ctx), s.o.Guard.Lift(ctx, wanted)); err != nil {
		return fmt.Errorf("load room %s: %w", s.o.Slug, err)
	}
	s.show(p, entries)
	if isFirst {
		s.view.note(began)
	}
	return nil
}

// keep shows the log of a held room that is loaded for the first time. No request about the room is
// answered.
func (s *Sequencer) keep(isFirst bool, p *projection.Projection, entries *pglog.Log) {
	if isFirst {
		s.set(p, entries, p.Size())
	}
}

// recheck checks whether the missing entries of a held room are back.
func (s *Sequencer) recheck(ctx context.Context) error {
	mayBeBack, err := s.o.Guard.MayBeBack(ctx)
	if err != nil || !mayBeBack {
		return err
	}
	if err := s.Load(ctx); err != nil {
		return err
	}
	if err := s.o.Restore(ctx); err != nil {
		return err
	}
	s.isLost = false
	s.o.Guard.Heal(s.view.Size())
	s.o.Changed(ctx)
	return nil
}

// Begin returns the function that adds the first entry of an empty log to a batch: the policy as of its creation.
func Begin(policy func(created fairness.Time) (*fairness.Policy, error)) func(*pglog.Batch) error {
	return func(b *pglog.Batch) error {
		created := fairness.Time(b.Now)
		rules, err := policy(created)
		if err != nil {
			return err
		}
		b.Publish()
		f := filler{projection: projection.New(nil, nil), batch: b, now: created, root: b.Root}
		return f.emit(&fairness.Room{Policy: *rules})
	}
}
