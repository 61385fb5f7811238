package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/watch"
)

// registerInterval is the time between checks of the log of rooms, which changes rarely.
const registerInterval = time.Minute

// registerWatch follows the log of rooms of a room's server.
type registerWatch struct {
	address string
	log     *watch.Log // nil until the first checkpoint is read
	keeper  *keeper
	checked time.Time // when it was last checked
	seen    uint64    // size that was printed
	problem string    // last problem that was printed
}

// stepRegister checks from time to time that the log of rooms continues. Only evidence, which is an error of type
// exit, ends the watch: everything else is a warning.
func (w *watchRun) stepRegister(ctx context.Context) error {
	r := w.register
	if r == nil || time.Since(r.checked) < registerInterval {
		return nil
	}
	r.checked = time.Now()
	err := w.checkRegister(ctx)
	var over *exit
	switch {
	case errors.As(err, &over):
		return err
	case err == nil:
		r.problem = ""
	case ctx.Err() == nil && err.Error() != r.problem:
		r.problem = err.Error()
		w.t.warn("log of rooms: " + r.problem)
	}
	return nil
}

func (w *watchRun) checkRegister(ctx context.Context) error {
	r := w.register
	if r.log == nil {
		if err := w.beginRegister(ctx); err != nil {
			return err
		}
	}
	found, err := r.log.Check(ctx, fairness.Time(time.Now().UnixMilli()))
	switch {
	case errors.Is(err, watch.ErrKept):
		return &exit{exitFailed, fmt.Errorf("log of rooms: %w", err),
			"the log of rooms was replaced: keep the checkpoint in " + quoted(r.keeper.from())}
	case err != nil:
		return err
	case found != nil:
		if err := w.say("%s the log of rooms does not continue:", now()); err != nil {
			return err
		}
		return w.reportEvidence(found)
	}
	r.keeper.save(r.log.Seen())
	if size := r.log.Head().Size; size != r.seen {
		r.seen = size
		return w.say("%s the log of rooms has %s: proofline-verify rooms %s lists them", now(),
			numeral.Count(size, "entry", "entries"), r.address)
	}
	return nil
}

// beginRegister reads the origin of the log, to continue where an earlier run ended.
func (w *watchRun) beginRegister(ctx context.Context) error {
	r := w.register
	src, err := open(r.address)
	if err != nil {
		return err
	}
	first, err := pin(ctx, src)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the server publishes none")
	}
	if err != nil {
		return err
	}
	name, isNamed := first.origin(), named(r.address, first.origin())
	if !isNamed { // one that was here before had the name of the address
		name = addressName(r.address)
	}
	r.keeper = newKeeper(&auditFlags{state: w.flags.state, noKeep: w.flags.noKeep}, w.t, name)
	kept, err := r.keeper.load()
	if err != nil {
		return err
	}
	if !isNamed && kept == nil { // it would be compared with the real log of that name
		r.keeper.file = ""
		w.t.warn(fmt.Sprintf("log of rooms: it calls itself %s, which cannot be verified", printable(first.origin())))
	}
	r.log = watch.NewLog(src, watch.Config{Kept: kept, Late: fairness.Millis(w.flags.late.Milliseconds())})
	return nil
}
