package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/verifier/source"
)

// readEntries downloads the transcript that is published at a URL.
func readEntries(ctx context.Context, url string, key note.Verifier) (entries [][]byte, err error) {
	src, err := source.HTTP(url, nil)
	if err != nil {
		return nil, err
	}
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	c, _, err := audit.OpenCheckpoint(signed, key)
	if err != nil {
		return nil, err
	}
	for tile := range audit.Tiles(c.Size) {
		if tile.Level >= 0 {
			continue
		}
		bundle, err := src.Tile(ctx, tile)
		if err != nil {
			return nil, err
		}
		if err := audit.SplitBundle(bundle, tile.Width, func(entry []byte) error {
			entries = append(entries, bytes.Clone(entry))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// arrival returns the text of the entry that a receipt is about.
func arrival(j *wire.Joined) ([]byte, error) {
	ticket, err := fairness.ParseTicket(j.Ticket)
	if err != nil {
		return nil, err
	}
	return fairness.AppendEntry(nil, &fairness.Arrive{
		Time: fairness.Time(j.Time.UnixMilli()), Window: fairness.WindowIndex(j.Window), Seq: j.Seq,
		Ticket: ticket, Lane: fairness.General,
	}), nil
}

// lostReceipts returns the receipts whose arrival is not in the transcript where they say, or whose
// proof is wrong. It adds the checkpoints of all others to the history.
func lostReceipts(receipts []wire.Joined, entries [][]byte, key note.Verifier, h history) (lost []string) {
	for i := range receipts {
		j := &receipts[i]
		entry, err := arrival(j)
		var c audit.Checkpoint
		if err == nil {
			var proof audit.Proof
			if proof, err = audit.ParseProof([]byte(j.Receipt)); err == nil {
				c, err = proof.Verify(audit.LeafHash(entry), key)
			}
			if err == nil && proof.Index != j.Index {
				err = fmt.Errorf("it is for entry %d, the answer says %d", proof.Index, j.Index)
			}
		}
		if err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", j.Ticket, err))
			continue
		}
		h.add(c)
		if j.Index >= uint64(len(entries)) || !bytes.Equal(entries[j.Index], entry) {
			lost = append(lost, fmt.Sprintf("%s: entry %d is another", j.Ticket, j.Index))
		}
	}
	return lost
}

// lostPasses returns the tickets with a pass whose admission is not in the transcript.
func lostPasses(tickets []string, entries [][]byte) (lost []string) {
	admitted := map[string]bool{}
	for _, entry := range entries {
		if f := strings.Fields(string(entry)); len(f) > 2 && f[0] == "admit" { // admit time ticket pass
			admitted[f[2]] = true
		}
	}
	for _, ticket := range tickets {
		if !admitted[ticket] {
			lost = append(lost, ticket)
		}
	}
	return lost
}

// audit runs the auditor's program on a room, and returns its exit code.
func (s *stage) audit(url string) (int, error) {
	out, err := s.command(nil, filepath.Join(s.bin, "proofline-verify"), "audit", url, "--no-keep")
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) && exited.Exited() {
		say("%s", out)
		return exited.ExitCode(), nil
	}
	return 0, err
}
