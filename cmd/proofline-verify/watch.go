package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/source"
	"github.com/proofline/proofline/verifier/watch"
)

const (
	// maxPause is the longest pause between failed attempts to read.
	maxPause = time.Minute
	// trailInterval is the time between checkpoints that are kept permanently.
	trailInterval = time.Minute
)

type watchFlags struct {
	vkey     string
	every    time.Duration
	length   time.Duration
	once     bool
	late     time.Duration
	evidence string
	state    string
	noKeep   bool
}

func watchCommand(t *terminal) *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:   "watch URL|DIR",
		Short: "Follow a live room, and write evidence of violations",
		Long: `Follow a live room: check at every step that its checkpoint is signed and
continues the one before, that every new entry follows the rules, and that
windows freeze and draw in time. Print a line for every event.

The first violation ends the watch with exit code 1, and is written to a file
that others can check offline with "proofline-verify evidence". A network
failure is not evidence: the watch continues, and exits with 3 only if it could
never read anything. It exits with 0 when the room has ended or time is up.

The newest checkpoint is kept for the next audit or watch, and in addition one
per minute.`,
		Example: `  proofline-verify watch https://example.com/r/sale --vkey @sale.vkey
  proofline-verify watch https://example.com/r/sale --for 2h --evidence ./evidence`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in the transcript)")
	c.Flags().DurationVar(&f.every, "every", 5*time.Second, "`DURATION` between checks, such as 30s")
	c.Flags().DurationVar(&f.length, "for", 0, "end after this `DURATION`, such as 2h (default: when the room ends)")
	c.Flags().BoolVar(&f.once, "once", false, "check once")
	c.Flags().DurationVar(&f.late, "late", time.Minute, "`DURATION` that a freeze, a draw or a proof may be late")
	c.Flags().StringVar(&f.evidence, "evidence", ".", "write evidence into this `DIR`")
	c.Flags().StringVar(&f.state, "state", "",
		"keep checkpoints in this `DIR` (default: $XDG_STATE_HOME/proofline-verify)")
	c.Flags().BoolVar(&f.noKeep, "no-keep", false, "do not read or keep checkpoints")
	c.MarkFlagsMutuallyExclusive("state", "no-keep")
	c.MarkFlagsMutuallyExclusive("for", "once")
	return c
}

func (f *watchFlags) run(ctx context.Context, t *terminal, arg string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	if f.every < 100*time.Millisecond || f.late < time.Second || f.length < 0 {
		return usage(errors.New("--every, --late or --for is too short"),
			"--every must be at least 100ms, --late at least 1s, and --for positive")
	}
	src, err := open(arg)
	if err != nil {
		return err
	}
	if f.length > 0 {
		timed, cancel := context.WithTimeout(ctx, f.length)
		defer cancel()
		ctx = timed
	}
	w := &watchRun{flags: f, t: t, arg: arg, src: src, vkey: vkey}
	return w.run(ctx)
}

// watchRun is one run of the command watch.
type watchRun struct {
	flags *watchFlags
	t     *terminal
	arg   string
	src   verifier.Source
	vkey  string

	watcher     *watch.Watcher // nil until the first checkpoint is read
	register    *registerWatch // nil: the log of rooms is not followed
	keeper      *keeper
	trail       time.Time // when a checkpoint was last kept permanently
	steps       int       // number of successful steps
	lastWarning string
}

func (w *watchRun) run(ctx context.Context) error {
	began, pause := time.Now(), w.flags.every
	for {
		done, err := w.step(ctx)
		var over *exit
		switch {
		case errors.As(err, &over):
			return over
		case ctx.Err() != nil:
			return w.end(ctx, began, nil)
		case err != nil && w.flags.once:
			return w.unreadable(err)
		case done:
			return errors.Join(w.end(ctx, began, nil), w.say("%s stopped: the room has ended", now()))
		case w.flags.once:
			return w.end(ctx, began, nil)
		case err != nil:
			w.warn(err)
			pause = min(2*pause, max(maxPause, w.flags.every))
		default:
			w.lastWarning, pause = "", w.flags.every
		}
		select {
		case <-ctx.Done():
			return w.end(ctx, began, err)
		case <-time.After(pause):
		}
	}
}

// warn prints an error, unless it is the same as the last one.
func (w *watchRun) warn(err error) {
	if text := err.Error(); text != w.lastWarning {
		w.lastWarning = text
		w.t.warn(text)
	}
}

// end prints a summary; err is the error of the last step.
func (w *watchRun) end(ctx context.Context, began time.Time, err error) error {
	if w.steps == 0 {
		if err == nil {
			err = fmt.Errorf("could not read anything: %w", context.Cause(ctx))
		}
		return w.unreadable(err)
	}
	head := w.watcher.Head()
	return w.say("%s checked %s in %s: nothing wrong up to %s of %s", now(),
		numeral.Count(uint64(w.steps), "time", "times"),
		time.Since(began).Round(time.Second), numeral.Count(head.Size, "entry", "entries"), printable(head.Origin))
}

// unreadable returns the exit for a room that cannot be read or whose files do not match.
func (w *watchRun) unreadable(err error) *exit {
	over := unreadable(err)
	if errors.Is(err, watch.ErrMismatch) || errors.Is(err, watch.ErrNoRoom) {
		over.hint = "it was changed, or is partly out of date: to see what is wrong, run proofline-verify audit " +
			quoted(w.arg)
	}
	return over
}

func (w *watchRun) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(w.t.out, format+"\n", args...); err != nil {
		return unreadable(err)
	}
	return nil
}

func now() string { return time.Now().UTC().Format("15:04:05") }

// step checks once and reports whether the room has ended. An error of type exit ends the watch.
func (w *watchRun) step(ctx context.Context) (done bool, err error) {
	if w.watcher == nil {
		if err := w.begin(ctx); err != nil {
			return false, err
		}
	}
	s, err := w.watcher.Step(ctx, fairness.Time(time.Now().UnixMilli()))
	if errors.Is(err, watch.ErrKept) {
		return false, &exit{exitFailed, err,
			"the key was replaced, or this is another room: audit with your earlier key, --vkey KEY"}
	}
	if err != nil {
		return false, err
	}
	if s.Evidence != nil {
		return true, w.reportEvidence(s.Evidence)
	}
	if w.steps++; w.steps == 1 {
		if err := w.say("%s watching %s with the key %s", now(), printable(w.watcher.Head().Origin),
			w.watcher.VKey()); err != nil {
			return false, err
		}
	}
	for _, line := range s.Events {
		if err := w.say("%s %s", now(), printable(line)); err != nil {
			return false, err
		}
	}
	w.keep()
	return s.Ended, w.stepRegister(ctx)
}

// begin reads the room's origin, to continue where an earlier run ended.
func (w *watchRun) begin(ctx context.Context) error {
	first, err := pin(ctx, w.src)
	if err != nil {
		return err
	}
	w.keeper = newKeeper(&auditFlags{state: w.flags.state, noKeep: w.flags.noKeep}, w.t, first.origin())
	kept, err := w.keeper.load()
	if err != nil {
		return err
	}
	if w.vkey == "" && !named(w.arg, first.origin()) {
		w.t.warn(fmt.Sprintf("this room calls itself %s, which cannot be verified: give its key with --vkey",
			first.origin()))
		w.keeper.file = "" // otherwise it would be compared with the real room of that name
	}
	if address, isRoom := registerAddress(w.arg); isRoom {
		w.register = &registerWatch{address: address}
	}
	w.watcher = watch.New(w.src, watch.Config{VKey: w.vkey, Kept: kept,
		Late: fairness.Millis(w.flags.late.Milliseconds())})
	return nil
}

// keep keeps the newest checkpoint for the next run, and one per trailInterval permanently.
func (w *watchRun) keep() {
	signed := w.watcher.Seen()
	w.keeper.save(signed)
	if w.keeper.file == "" || time.Since(w.trail) < trailInterval {
		return
	}
	w.trail = time.Now()
	dir := strings.TrimSuffix(w.keeper.file, ".checkpoint") + ".watched"
	name := filepath.Join(dir, fmt.Sprintf("%012d.checkpoint", w.watcher.Head().Size))
	if _, err := os.Stat(name); err == nil {
		return
	}
	if err := source.WriteFile(name, signed); err != nil {
		w.t.warn(fmt.Sprintf("cannot keep the checkpoint: %v", err))
	}
}

// reportEvidence writes the evidence to a file and ends the watch.
func (w *watchRun) reportEvidence(e *evidence.Evidence) error {
	if err := w.say("%s ✗ %s", now(), evidenceTitles[e.Kind]); err != nil {
		return err
	}
	name, err := writeEvidence(w.flags.evidence, e)
	if err != nil {
		return &exit{exitFailed, fmt.Errorf("found a violation, but cannot write the evidence: %w", err),
			"watch again with --evidence DIR"}
	}
	return &exit{exitFailed, fmt.Errorf("evidence written to %s", name),
		"keep it, and check it with: proofline-verify evidence " + quoted(name)}
}

// writeEvidence writes evidence to a new file.
func writeEvidence(dir string, e *evidence.Evidence) (string, error) {
	content, err := e.Marshal()
	if err != nil {
		return "", err
	}
	finding, err := e.Check("")
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name := filepath.Join(dir, fmt.Sprintf("evidence-%s-%d.json", e.Kind, finding.First.Size))
		if n > 1 {
			name = strings.TrimSuffix(name, ".json") + fmt.Sprintf("-%d.json", n)
		}
		there, err := os.ReadFile(name) //nolint:gosec // named by the user
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, source.WriteFile(name, content)
		case err != nil:
			return "", err
		case bytes.Equal(there, content):
			return name, nil
		}
	}
}
