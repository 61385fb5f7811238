package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/ticket"
	"github.com/proofline/proofline/verifier/watch"
)

type compareFlags struct {
	vkey     string
	sources  []string
	evidence string
}

func compareCommand(t *terminal) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Check whether two people were shown the same history",
		Long: `Compare what two people were shown of one room. Each of A and B is a file with a
checkpoint, a receipt or a saved proof, or a whole transcript: the address of a
room, a directory or an archive.

Checkpoints of equal size must be identical. Comparing different sizes requires
a transcript that covers the larger one: A, B, or one given with --source.
Checking a receipt requires its entry, from a saved proof or a transcript.

Exit code 0: one history, as far as these go; 1: two histories, proven by a file
of evidence, or something is not signed by the key, or a receipt is wrong; 3: an
input cannot be read, or the result is undecided.`,
		Example: `  proofline-verify compare mine.json hers.json --source https://example.com/r/sale
  proofline-verify compare checkpoint.txt https://example.com/r/sale`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in A, B or a source)")
	c.Flags().StringArrayVar(&f.sources, "source", nil, "transcript to compare with, a `URL|DIR|ZIP`; may be repeated")
	c.Flags().StringVar(&f.evidence, "evidence", ".", "write evidence into this `DIR`")
	return c
}

// input is one of the checkpoints to compare.
type input struct {
	name    string // shown to the user
	signed  []byte
	arrival *ticket.Proven // arrival that the receipt proves; nil: unknown
	head    audit.Checkpoint

	src     verifier.Source // source of the checkpoint; nil: none
	receipt *audit.Proof    // receipt with this checkpoint; nil: none
	entry   []byte          // entry of the receipt; nil: unknown
	result  receiptResult   // result of checking the receipt
}

// comparison is the state of a comparison.
type comparison struct {
	inputs  []input
	sources []verifier.Source
	vkey    string
	keyFrom string
	unread  error // why two inputs could not be compared
}

func (f *compareFlags) run(ctx context.Context, t *terminal, args []string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	c := &comparison{vkey: vkey, keyFrom: "given"}
	for i, arg := range append(args[:2:2], f.sources...) {
		if err := c.add(ctx, arg, i >= 2); err != nil {
			return err
		}
	}
	if c.vkey == "" {
		return usage(errors.New("the key of the log is unknown"), "give it with --vkey, or a transcript with --source")
	}
	if err := c.open(); err != nil {
		return err
	}
	agree, found := c.compare(ctx)
	if found == nil {
		c.checkReceipts(ctx, agree)
	}
	if ctx.Err() != nil {
		return unreadable(ctx.Err())
	}
	return f.print(t, c, agree, found)
}

// add reads the checkpoints that an argument contains.
func (c *comparison) add(ctx context.Context, arg string, whole bool) error {
	info, err := os.Stat(arg)
	isURL := strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
	if whole || isURL || err == nil && (info.IsDir() || strings.EqualFold(filepath.Ext(arg), ".zip")) {
		return c.addSource(ctx, arg)
	}
	content, err := readSmall(arg)
	if err != nil {
		return &exit{exitUnreadable, err, "give a checkpoint, a receipt, a saved proof, or a transcript"}
	}
	if b, err := ticket.Parse(content); err == nil {
		return c.addBundle(arg, b)
	}
	if receipt, err := audit.ParseProof(content); err == nil {
		c.inputs = append(c.inputs, input{name: arg + ", receipt", signed: receipt.Checkpoint, receipt: &receipt})
		return nil
	}
	if _, err := verifier.Unverified(content); err != nil {
		return &exit{exitUnreadable, fmt.Errorf("read %s: %w", arg, err),
			"give a checkpoint, a receipt, a saved proof, or a transcript, as it was saved"}
	}
	c.inputs = append(c.inputs, input{name: arg, signed: content})
	return nil
}

func readSmall(name string) ([]byte, error) {
	file, err := os.Open(name) //nolint:gosec // named by the user
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return io.ReadAll(io.LimitReader(file, ticket.MaxSize+1))
}

// named uses a key from an input, unless the key is already known.
func (c *comparison) named(vkey, from string) {
	if c.vkey == "" && vkey != "" {
		c.vkey, c.keyFrom = vkey, "named by "+from
	}
}

func (c *comparison) addSource(ctx context.Context, arg string) error {
	src, err := open(arg)
	if err != nil {
		return err
	}
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return unreadable(err)
	}
	if c.vkey == "" {
		vkey, err := watch.LogKey(ctx, src, signed)
		if err != nil {
			return unreadable(fmt.Errorf("read %s: %w", arg, err))
		}
		c.named(vkey, arg)
	}
	c.sources = append(c.sources, src)
	c.inputs = append(c.inputs, input{name: arg, signed: signed, src: src})
	return nil
}

func (c *comparison) addBundle(arg string, b *ticket.Bundle) error {
	if b.VKey != nil {
		c.named(string(*b.VKey), arg)
	} else if b.Room != nil {
		if e, err := fairness.ParseEntry(b.Room.Entry); err == nil {
			if room, ok := e.(*fairness.Room); ok {
				c.named(room.LogKey, arg)
			}
		}
	}
	receipt, err := audit.ParseProof(b.Receipt)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("read %s: the receipt in it: %w", arg, err),
			"check it with: proofline-verify ticket " + quoted(arg)}
	}
	held := input{name: arg + ", receipt", signed: receipt.Checkpoint, receipt: &receipt}
	if b.Arrive != nil {
		held.entry = b.Arrive.Entry
	}
	if b.Arrive != nil && uint64(b.Arrive.Index) == receipt.Index {
		held.arrival = &ticket.Proven{Index: b.Arrive.Index, Entry: b.Arrive.Entry, Path: receipt.Path}
	}
	c.inputs = append(c.inputs, held, input{name: arg + ", checkpoint", signed: b.Checkpoint})
	return nil
}

// open checks that the key signed all inputs.
func (c *comparison) open() error {
	key, err := audit.ParseKey(c.vkey)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("the key %.200q (%s): %w", c.vkey, c.keyFrom, err),
			"give the key with --vkey"}
	}
	for i := range c.inputs {
		x := &c.inputs[i]
		claimed, err := verifier.Unverified(x.signed)
		if err == nil && claimed.Origin != key.Name() {
			return &exit{exitUnreadable, fmt.Errorf("%s belongs to the room %s, but the key to %s", x.name,
				claimed.Origin, key.Name()), "compare files of one room"}
		}
		if x.head, _, err = audit.OpenCheckpoint(x.signed, key); err != nil {
			return &exit{exitFailed, fmt.Errorf("%s: %w (key %s)", x.name, err, c.keyFrom),
				"the file was changed, or the room has two keys: use the key that the organizer publishes"}
		}
	}
	return nil
}

// compare compares all inputs with each other. agree[i][j] reports whether inputs i and j are
// consistent.
func (c *comparison) compare(ctx context.Context) (agree [][]bool, found *evidence.Evidence) {
	agree = make([][]bool, len(c.inputs))
	for i := range agree {
		agree[i] = make([]bool, len(c.inputs))
	}
	for i := range c.inputs {
		for j := range i {
			e, err := c.pair(ctx, &c.inputs[i], &c.inputs[j])
			if e != nil {
				return nil, e
			}
			agree[i][j], agree[j][i] = err == nil, err == nil
			if err != nil {
				c.unread = err
			}
		}
	}
	for k := range c.inputs { // two prefixes of one history agree
		for i := range c.inputs {
			for j := range i {
				size := max(c.inputs[i].head.Size, c.inputs[j].head.Size)
				if agree[i][k] && agree[j][k] && c.inputs[k].head.Size >= size {
					agree[i][j], agree[j][i] = true, true
				}
			}
		}
	}
	return agree, nil
}

// pair compares two inputs. A dropped arrival is better evidence than a fork: people understand it
// more easily, and sometimes it can be proven when the fork cannot.
func (c *comparison) pair(ctx context.Context, a, b *input) (*evidence.Evidence, error) {
	if a.head.Size > b.head.Size {
		a, b = b, a
	}
	e, err := c.contradict(ctx, a, b)
	if e == nil && err == nil {
		return nil, nil
	}
	if dropped := c.dropped(ctx, a, b); dropped != nil {
		return dropped, nil
	}
	return e, err
}

// contradict compares two inputs with the tiles of each transcript in turn. Tiles are verified, so
// any source with the needed tiles will do.
func (c *comparison) contradict(ctx context.Context, small, large *input) (e *evidence.Evidence, err error) {
	if small.head.Size == large.head.Size {
		return evidence.Contradict(ctx, nil, c.vkey, small.signed, large.signed)
	}
	err = errors.New("no transcript was given: add one with --source URL|DIR")
	for _, src := range c.sources {
		if e, err = evidence.Contradict(ctx, src.Tile, c.vkey, small.signed, large.signed); err == nil {
			return e, nil
		}
	}
	return nil, err
}

// dropped proves that an arrival of one history is missing from the other; nil if it cannot.
func (c *comparison) dropped(ctx context.Context, a, b *input) *evidence.Evidence {
	for _, pair := range [][2]*input{{a, b}, {b, a}} {
		for _, src := range c.sources {
			if pair[0].arrival == nil {
				continue
			}
			e, err := evidence.Dropped(ctx, src.Tile, c.vkey, pair[0].signed, pair[0].arrival, pair[1].signed)
			if err == nil && e != nil {
				return e
			}
		}
	}
	return nil
}

func (f *compareFlags) print(t *terminal, c *comparison, agree [][]bool, found *evidence.Evidence) error {
	var b strings.Builder
	colour := t.colour()
	wrong := c.wrong()
	conclusive := found == nil && all(agree)
	switch {
	case found != nil:
		fmt.Fprintf(&b, "%s\n\n", colour(red, "✗ "+evidenceTitles[found.Kind]))
	case wrong != nil:
		fmt.Fprintf(&b, "%s\n\n", colour(red, "✗ WRONG RECEIPT: it does not prove the entry that it names"))
	case conclusive:
		fmt.Fprintf(&b, "%s\n  Each of these is a prefix of every larger one.\n\n",
			colour(green, "✓ ONE HISTORY, as far as these go"))
	default:
		fmt.Fprintf(&b, "%s\n  No contradiction was found, but not all could be compared.\n\n",
			colour(grey, "– CANNOT TELL"))
	}
	for _, x := range c.inputs {
		fmt.Fprintf(&b, "  %s\n      %s, root %v\n", printable(x.name),
			numeral.Count(x.head.Size, "entry", "entries"), x.head.Root)
		if x.result.text != "" {
			printItem(&b, "      ", printable(x.result.text), func(s string) string { return s })
		}
	}
	fmt.Fprintf(&b, "  key, %s\n      %s\n", printable(c.keyFrom), printable(c.vkey))
	if _, err := fmt.Fprint(t.out, b.String()); err != nil {
		return unreadable(err)
	}
	if found != nil {
		name, err := writeEvidence(f.evidence, found)
		if err != nil {
			return &exit{exitFailed, fmt.Errorf("cannot write the evidence: %w", err),
				"compare again with --evidence DIR"}
		}
		return &exit{exitFailed, fmt.Errorf("evidence written to %s", name),
			"keep it, and check it with: proofline-verify evidence " + quoted(name)}
	}
	if wrong != nil {
		return &exit{exitFailed, wrong, "the receipt was changed: ask for the original"}
	}
	if !conclusive {
		return &exit{exitUnreadable, fmt.Errorf("cannot tell: %w", c.unread),
			"give a transcript that covers the larger one with --source"}
	}
	return nil
}

// wrong returns the error of the first wrong receipt; nil if there is none.
func (c *comparison) wrong() error {
	for _, x := range c.inputs {
		if x.result.err != nil {
			return x.result.err
		}
	}
	return nil
}

// all reports whether every pair agrees.
func all(agree [][]bool) bool {
	for i, row := range agree {
		for j, yes := range row {
			if i != j && !yes {
				return false
			}
		}
	}
	return true
}
