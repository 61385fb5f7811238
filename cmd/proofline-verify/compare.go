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
		Short: "Compare what two people were shown: one history, or two?",
		Long: `Compare what two people were shown of one room. Each of A and B is a file with a
checkpoint, a receipt or a saved proof, or a whole transcript: the address of a
room, a directory or an archive.

Checkpoints of equal size must be the same. Those of different sizes can only be
compared with the help of a transcript that reaches to the larger one: A, B, or
one given with --source. What a receipt proves can only be checked with the
entry it is of, from a saved proof or a transcript.

Exit code 0: one history, as far as these go; 1: two histories, and a file of
evidence proves it, or something is not signed by the key, or a receipt does not
hold; 3: cannot be read, or cannot be told.`,
		Example: `  proofline-verify compare mine.json hers.json --source https://example.com/r/sale
  proofline-verify compare checkpoint.txt https://example.com/r/sale`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "", "`KEY` of the log: the key itself, or @FILE (default one that A, B or a source names)")
	c.Flags().StringArrayVar(&f.sources, "source", nil, "transcript to compare with, a `URL|DIR|ZIP`; may be repeated")
	c.Flags().StringVar(&f.evidence, "evidence", ".", "write evidence into this `DIR`")
	return c
}

// exhibit is a checkpoint that somebody has.
type exhibit struct {
	name    string // for people
	signed  []byte
	arrival *ticket.Proven // that its holder has a receipt for, if it is known
	head    audit.Checkpoint

	src      verifier.Source // whose checkpoint this is, nil for none
	receipt  *audit.Proof    // that has this checkpoint, nil for none
	entry    []byte          // that the receipt is said to be of, nil if it is not known
	standing standing        // of the receipt
}

// hearing is one comparison under way.
type hearing struct {
	exhibits []exhibit
	sources  []verifier.Source
	vkey     string
	keyFrom  string
	unread   error // why a transcript did not help
}

func (f *compareFlags) run(ctx context.Context, t *terminal, args []string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	h := &hearing{vkey: vkey, keyFrom: "given"}
	for i, arg := range append(args[:2:2], f.sources...) {
		if err := h.admit(ctx, arg, i >= 2); err != nil {
			return err
		}
	}
	if h.vkey == "" {
		return usage(errors.New("nothing names the key of the log"), "give it with --vkey, or a transcript with --source")
	}
	if err := h.open(); err != nil {
		return err
	}
	agree, found := h.compare(ctx)
	if found == nil {
		h.checkReceipts(ctx, agree)
	}
	if ctx.Err() != nil {
		return unreadable(ctx.Err())
	}
	return f.tell(t, h, agree, found)
}

// admit reads what an argument names.
func (h *hearing) admit(ctx context.Context, arg string, whole bool) error {
	info, err := os.Stat(arg)
	if whole || strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") || err == nil && info.IsDir() || err == nil && strings.EqualFold(filepath.Ext(arg), ".zip") {
		return h.admitSource(ctx, arg)
	}
	content, err := readSmall(arg)
	if err != nil {
		return &exit{exitUnreadable, err, "give a checkpoint, a receipt, a saved proof, or a transcript"}
	}
	if b, err := ticket.Parse(content); err == nil {
		return h.admitBundle(arg, b)
	}
	if receipt, err := audit.ParseProof(content); err == nil {
		h.exhibits = append(h.exhibits, exhibit{name: arg + ", receipt", signed: receipt.Checkpoint, receipt: &receipt})
		return nil
	}
	if _, err := verifier.Unverified(content); err != nil {
		return &exit{exitUnreadable, fmt.Errorf("read %s: %w", arg, err), "give a checkpoint, a receipt, a saved proof, or a transcript, as it was saved"}
	}
	h.exhibits = append(h.exhibits, exhibit{name: arg, signed: content})
	return nil
}

func readSmall(name string) ([]byte, error) {
	file, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	return io.ReadAll(io.LimitReader(file, ticket.MaxSize+1))
}

// named takes a key, unless there is one.
func (h *hearing) named(vkey, from string) {
	if h.vkey == "" && vkey != "" {
		h.vkey, h.keyFrom = vkey, "named by "+from
	}
}

func (h *hearing) admitSource(ctx context.Context, arg string) error {
	src, err := open(arg)
	if err != nil {
		return err
	}
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return unreadable(err)
	}
	if h.vkey == "" {
		vkey, err := watch.RoomKey(ctx, src, signed)
		if err != nil {
			return unreadable(fmt.Errorf("read %s: %w", arg, err))
		}
		h.named(vkey, arg)
	}
	h.sources = append(h.sources, src)
	h.exhibits = append(h.exhibits, exhibit{name: arg, signed: signed, src: src})
	return nil
}

func (h *hearing) admitBundle(arg string, b *ticket.Bundle) error {
	if b.VKey != nil {
		h.named(string(*b.VKey), arg)
	} else if b.Room != nil {
		if e, err := fairness.ParseEntry(b.Room.Entry); err == nil {
			if room, ok := e.(*fairness.Room); ok {
				h.named(room.LogKey, arg)
			}
		}
	}
	receipt, err := audit.ParseProof(b.Receipt)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("read %s: the receipt in it: %w", arg, err), "check it with: proofline-verify ticket " + quoted(arg)}
	}
	held := exhibit{name: arg + ", receipt", signed: receipt.Checkpoint, receipt: &receipt}
	if b.Arrive != nil {
		held.entry = b.Arrive.Entry
	}
	if b.Arrive != nil && uint64(b.Arrive.Index) == receipt.Index {
		held.arrival = &ticket.Proven{Index: b.Arrive.Index, Entry: b.Arrive.Entry, Path: receipt.Path}
	}
	h.exhibits = append(h.exhibits, held, exhibit{name: arg + ", checkpoint", signed: b.Checkpoint})
	return nil
}

// open checks that all are signed by the key.
func (h *hearing) open() error {
	key, err := audit.ParseKey(h.vkey)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("the key %.200q, %s: %w", h.vkey, h.keyFrom, err), "give the key with --vkey"}
	}
	for i := range h.exhibits {
		x := &h.exhibits[i]
		claimed, err := verifier.Unverified(x.signed)
		if err == nil && claimed.Origin != key.Name() {
			return &exit{exitUnreadable, fmt.Errorf("%s is of the room %s, and the key of %s", x.name, claimed.Origin, key.Name()), "compare what is of one room"}
		}
		if x.head, _, err = audit.OpenCheckpoint(x.signed, key); err != nil {
			return &exit{exitFailed, fmt.Errorf("%s: %w (key %s)", x.name, err, h.keyFrom), "somebody changed it, or the room has two keys: compare with the one that the organizer publishes"}
		}
	}
	return nil
}

// compare compares all with all. agree says for each pair whether the one is
// the beginning of the other.
func (h *hearing) compare(ctx context.Context) (agree [][]bool, found *evidence.Evidence) {
	agree = make([][]bool, len(h.exhibits))
	for i := range agree {
		agree[i] = make([]bool, len(h.exhibits))
	}
	for i := range h.exhibits {
		for j := range i {
			e, err := h.pair(ctx, &h.exhibits[i], &h.exhibits[j])
			if e != nil {
				return nil, e
			}
			agree[i][j], agree[j][i] = err == nil, err == nil
			if err != nil {
				h.unread = err
			}
		}
	}
	for k := range h.exhibits { // two beginnings of one history agree
		for i := range h.exhibits {
			for j := range i {
				size := max(h.exhibits[i].head.Size, h.exhibits[j].head.Size)
				if agree[i][k] && agree[j][k] && h.exhibits[k].head.Size >= size {
					agree[i][j], agree[j][i] = true, true
				}
			}
		}
	}
	return agree, nil
}

// pair compares two. What has become of an arrival in the other history tells
// people more than that there are two, and may be proven where that is not.
func (h *hearing) pair(ctx context.Context, a, b *exhibit) (*evidence.Evidence, error) {
	if a.head.Size > b.head.Size {
		a, b = b, a
	}
	e, err := h.contradict(ctx, a, b)
	if e == nil && err == nil {
		return nil, nil
	}
	if dropped := h.dropped(ctx, a, b); dropped != nil {
		return dropped, nil
	}
	return e, err
}

// contradict compares with the tiles of every transcript. Tiles are checked, so
// any that have the answer are good.
func (h *hearing) contradict(ctx context.Context, small, large *exhibit) (e *evidence.Evidence, err error) {
	if small.head.Size == large.head.Size {
		return evidence.Contradict(ctx, nil, h.vkey, small.signed, large.signed)
	}
	err = errors.New("no transcript was given: add --source URL|DIR")
	for _, src := range h.sources {
		if e, err = evidence.Contradict(ctx, src.Tile, h.vkey, small.signed, large.signed); err == nil {
			return e, nil
		}
	}
	return nil, err
}

// dropped proves that an arrival of the one is not in the other, nil if it cannot.
func (h *hearing) dropped(ctx context.Context, a, b *exhibit) *evidence.Evidence {
	for _, pair := range [][2]*exhibit{{a, b}, {b, a}} {
		for _, src := range h.sources {
			if pair[0].arrival == nil {
				continue
			}
			e, err := evidence.Dropped(ctx, src.Tile, h.vkey, pair[0].signed, pair[0].arrival, pair[1].signed)
			if err == nil && e != nil {
				return e
			}
		}
	}
	return nil
}

func (f *compareFlags) tell(t *terminal, h *hearing, agree [][]bool, found *evidence.Evidence) error {
	var b strings.Builder
	colour := t.colour()
	wrong := h.wrong()
	told := found == nil && all(agree)
	switch {
	case found != nil:
		fmt.Fprintf(&b, "%s\n\n", colour(red, "✗ "+evidenceHeads[found.Kind]))
	case wrong != nil:
		fmt.Fprintf(&b, "%s\n\n", colour(red, "✗ A RECEIPT DOES NOT HOLD: it is not one of the entry it names"))
	case told:
		fmt.Fprintf(&b, "%s\n  Each of these is the beginning of every larger one.\n\n", colour(green, "✓ ONE HISTORY, as far as these go"))
	default:
		fmt.Fprintf(&b, "%s\n  Nothing contradicts, but not all could be compared.\n\n", colour(grey, "– CANNOT TELL"))
	}
	for _, x := range h.exhibits {
		fmt.Fprintf(&b, "  %s\n      %s, root %v\n", printable(x.name), numeral.Count(x.head.Size, "entry", "entries"), x.head.Root)
		if x.standing.text != "" {
			printItem(&b, "      ", printable(x.standing.text), func(s string) string { return s })
		}
	}
	fmt.Fprintf(&b, "  key, %s\n      %s\n", printable(h.keyFrom), printable(h.vkey))
	if _, err := fmt.Fprint(t.out, b.String()); err != nil {
		return unreadable(err)
	}
	if found != nil {
		name, err := writeEvidence(f.evidence, found)
		if err != nil {
			return &exit{exitFailed, fmt.Errorf("the evidence could not be written: %w", err), "compare again with --evidence DIR"}
		}
		return &exit{exitFailed, fmt.Errorf("evidence written to %s", name), "keep it, and check it with: proofline-verify evidence " + quoted(name)}
	}
	if wrong != nil {
		return &exit{exitFailed, wrong, "somebody changed it: ask for the receipt as the room gave it"}
	}
	if !told {
		return &exit{exitUnreadable, fmt.Errorf("cannot tell: %w", h.unread), "give a transcript that reaches to the larger one with --source"}
	}
	return nil
}

// wrong returns what is wrong with the first receipt that does not hold, nil for none.
func (h *hearing) wrong() error {
	for _, x := range h.exhibits {
		if x.standing.err != nil {
			return x.standing.err
		}
	}
	return nil
}

// all tells whether every pair agrees.
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
