package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
)

// mostAmends is how many amendments are printed.
const mostAmends = 20

// amendments picks the amendments out of what an audit reads. It looks at the
// first word of every entry alone, so an audit is as fast with it.
type amendments struct {
	verifier.Source

	mu    sync.Mutex // guards list: bundles are read in parallel
	list  []report.Amend
	total int
}

// told returns the amendments of a story.
func told(s *report.Story) *amendments {
	return &amendments{list: s.Amends[:min(len(s.Amends), mostAmends)], total: len(s.Amends) + int(min(s.Unlisted, math.MaxInt32))}
}

// Tile reads a bundle or a tile.
func (a *amendments) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	data, err := a.Source.Tile(ctx, t)
	if err != nil || t.Level != -1 {
		return data, err
	}
	index := t.Index * audit.TileWidth
	_ = audit.SplitBundle(data, t.Width, func(entry []byte) error { // a malformed bundle is for the audit to say
		if bytes.HasPrefix(entry, []byte(fairness.KindAmend+" ")) {
			a.add(index, entry)
		}
		index++
		return nil
	})
	return data, nil
}

// add keeps the earliest amendments.
func (a *amendments) add(index uint64, text []byte) {
	e, err := fairness.ParseEntry(text)
	amend, ok := e.(*fairness.Amend)
	if err != nil || !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total++
	a.list = append(a.list, report.Amend{Amend: *amend, Rules: len(amend.Windows), Entry: index})
	slices.SortFunc(a.list, func(a, b report.Amend) int { return cmp.Compare(a.Entry, b.Entry) })
	a.list = a.list[:min(len(a.list), mostAmends)]
}

// print prints what the operator changed while the room lived.
func (a *amendments) print(b *strings.Builder) {
	if a == nil || a.total == 0 {
		return
	}
	b.WriteString("\nAmended\n")
	for i := range a.list {
		printItem(b, "   - ", a.list[i].String(), func(s string) string { return s })
	}
	if n := a.total - len(a.list); n > 0 {
		fmt.Fprintf(b, "   - and %s more: --html FILE lists them\n", numeral.Group(uint64(n)))
	}
}
