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
	// longestPause is how long a watch waits at most when it cannot read.
	longestPause = time.Minute
	// trailEvery is how often a checkpoint is kept for good.
	trailEvery = time.Minute
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
		Short: "Follow a live room, and write evidence of what is wrong",
		Long: `Follow a live room: check at every step that its checkpoint is signed and
continues the one before, that every new entry keeps to the rules, and that
windows freeze and draw in time. Say in one line what happens.

What is wrong is written to a file that others can check offline with
"proofline-verify evidence", and ends the watch with exit code 1. A network
that fails is no evidence: the watch goes on, and ends with 3 only if nothing
could ever be read. It ends with 0 when the room has ended, or the time is over.

Checkpoints are kept, the newest one for the next audit or watch, and one a
minute beside it.`,
		Example: `  proofline-verify watch https://example.com/r/sale --vkey @sale.vkey
  proofline-verify watch https://example.com/r/sale --for 2h --evidence ./evidence`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "", "`KEY` of the log: the key itself, or @FILE (default the one the room names)")
	c.Flags().DurationVar(&f.every, "every", 5*time.Second, "`DURATION` from one look to the next, such as 30s")
	c.Flags().DurationVar(&f.length, "for", 0, "end after this `DURATION`, such as 2h (default when the room ends)")
	c.Flags().BoolVar(&f.once, "once", false, "look once")
	c.Flags().DurationVar(&f.late, "late", time.Minute, "`DURATION` for which a freeze, a draw or a proof may be missing")
	c.Flags().StringVar(&f.evidence, "evidence", ".", "write evidence into this `DIR`")
	c.Flags().StringVar(&f.state, "state", "", "keep checkpoints in this `DIR` (default $XDG_STATE_HOME/proofline-verify)")
	c.Flags().BoolVar(&f.noKeep, "no-keep", false, "neither use nor keep checkpoints of other runs")
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
		return usage(errors.New("--every, --late or --for is too short"), "look every 100ms at most, and let things be late by 1s at least")
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
	p := &patrol{flags: f, t: t, arg: arg, src: src, vkey: vkey}
	return p.run(ctx)
}

// patrol is one watch under way.
type patrol struct {
	flags *watchFlags
	t     *terminal
	arg   string
	src   verifier.Source
	vkey  string

	watcher *watch.Watcher // nil until the first checkpoint is read
	keeper  *keeper
	trail   time.Time // when a checkpoint was kept for good
	steps   int       // that read something
	said    string    // the warning said last
}

func (p *patrol) run(ctx context.Context) error {
	began, pause := time.Now(), p.flags.every
	for {
		done, err := p.step(ctx)
		var over *exit
		switch {
		case errors.As(err, &over):
			return over
		case ctx.Err() != nil:
			return p.end(ctx, began, nil)
		case err != nil && p.flags.once:
			return p.unreadable(err)
		case done:
			return errors.Join(p.end(ctx, began, nil), p.say("%s stopped: the room has ended, and nothing can follow", now()))
		case p.flags.once:
			return p.end(ctx, began, nil)
		case err != nil:
			p.warn(err)
			pause = min(2*pause, max(longestPause, p.flags.every))
		default:
			p.said, pause = "", p.flags.every
		}
		select {
		case <-ctx.Done():
			return p.end(ctx, began, err)
		case <-time.After(pause):
		}
	}
}

// warn says once what cannot be read.
func (p *patrol) warn(err error) {
	if text := err.Error(); text != p.said {
		p.said = text
		p.t.warn(text)
	}
}

// end says what was seen; err is why the last step failed.
func (p *patrol) end(ctx context.Context, began time.Time, err error) error {
	if p.steps == 0 {
		if err == nil {
			err = fmt.Errorf("nothing could be read: %w", context.Cause(ctx))
		}
		return p.unreadable(err)
	}
	head := p.watcher.Head()
	return p.say("%s looked %s in %s: nothing wrong up to %s of %s", now(), numeral.Count(uint64(p.steps), "time", "times"),
		time.Since(began).Round(time.Second), numeral.Count(head.Size, "entry", "entries"), printable(head.Origin))
}

// unreadable says what to do when nothing could be read, or nothing that fits.
func (p *patrol) unreadable(err error) *exit {
	over := unreadable(err)
	if errors.Is(err, watch.ErrPoor) || errors.Is(err, watch.ErrNoRoom) {
		over.hint = "it was changed, or is half of an older state: proofline-verify audit " + quoted(p.arg) + " says what is wrong"
	}
	return over
}

func (p *patrol) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(p.t.out, format+"\n", args...); err != nil {
		return unreadable(err)
	}
	return nil
}

func now() string { return time.Now().UTC().Format("15:04:05") }

// step looks once, and tells whether there is nothing more to come. An error
// that is an exit ends the watch.
func (p *patrol) step(ctx context.Context) (done bool, err error) {
	if p.watcher == nil {
		if err := p.begin(ctx); err != nil {
			return false, err
		}
	}
	s, err := p.watcher.Step(ctx, fairness.Time(time.Now().UnixMilli()))
	if errors.Is(err, watch.ErrKept) {
		return false, &exit{exitFailed, err, "the key was swapped, or this is another room: audit with the key you had before, --vkey KEY"}
	}
	if err != nil {
		return false, err
	}
	if s.Evidence != nil {
		return true, p.accuse(s.Evidence)
	}
	if p.steps++; p.steps == 1 {
		if err := p.say("%s watching %s with the key %s", now(), printable(p.watcher.Head().Origin), p.watcher.VKey()); err != nil {
			return false, err
		}
	}
	for _, line := range s.Events {
		if err := p.say("%s %s", now(), printable(line)); err != nil {
			return false, err
		}
	}
	p.keep()
	return s.Ended, nil
}

// begin finds out which room it is, to take up where an earlier run ended.
func (p *patrol) begin(ctx context.Context) error {
	first, err := pin(ctx, p.src)
	if err != nil {
		return err
	}
	p.keeper = newKeeper(&auditFlags{state: p.flags.state, noKeep: p.flags.noKeep}, p.t, first.origin())
	kept, err := p.keeper.load()
	if err != nil {
		return err
	}
	if p.vkey == "" && !named(p.arg, first.origin()) {
		p.t.warn(fmt.Sprintf("this room calls itself %s, and nothing says that it is: give its key with --vkey", first.origin()))
		p.keeper.file = "" // it would be held against the room whose name it has taken
	}
	p.watcher = watch.New(p.src, watch.Config{VKey: p.vkey, Kept: kept, Late: fairness.Millis(p.flags.late.Milliseconds())})
	return nil
}

// keep keeps the newest checkpoint for the next run, and one a minute for good.
func (p *patrol) keep() {
	signed := p.watcher.Seen()
	p.keeper.save(signed)
	if p.keeper.file == "" || time.Since(p.trail) < trailEvery {
		return
	}
	p.trail = time.Now()
	dir := strings.TrimSuffix(p.keeper.file, ".checkpoint") + ".watched"
	name := filepath.Join(dir, fmt.Sprintf("%012d.checkpoint", p.watcher.Head().Size))
	if _, err := os.Stat(name); err == nil {
		return
	}
	if err := source.WriteFile(name, signed); err != nil {
		p.t.warn(fmt.Sprintf("the checkpoint could not be kept: %v", err))
	}
}

// accuse writes evidence and ends the watch.
func (p *patrol) accuse(e *evidence.Evidence) error {
	if err := p.say("%s ✗ %s", now(), evidenceHeads[e.Kind]); err != nil {
		return err
	}
	name, err := writeEvidence(p.flags.evidence, e)
	if err != nil {
		return &exit{exitFailed, fmt.Errorf("something is wrong, and the evidence could not be written: %w", err), "watch again with --evidence DIR"}
	}
	return &exit{exitFailed, fmt.Errorf("evidence written to %s", name), "keep it, and check it with: proofline-verify evidence " + quoted(name)}
}

// writeEvidence writes a file that replaces no other.
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
		there, err := os.ReadFile(name) //nolint:gosec // where the user said
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
