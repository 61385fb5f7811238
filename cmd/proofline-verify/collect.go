package main

import (
	"context"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/stats"
)

// collectingSource is a source that also passes everything an audit reads to a collector, so that
// audit and statistics use the same bytes. The statistics are only meaningful if the audit passes.
// An audit reads some bundles ahead; they are kept in memory.
type collectingSource struct {
	verifier.Source

	mu        sync.Mutex // guards the fields below
	collector *stats.Collector
	parser    fairness.Parser
	ahead     map[uint64]bundle // bundles after next, by index
	next      uint64            // the bundle to collect
	err       error             // first error
}

type bundle struct {
	tile    audit.Tile
	content []byte
}

func collect(src verifier.Source, c *stats.Collector) *collectingSource {
	return &collectingSource{Source: src, collector: c, ahead: map[uint64]bundle{}}
}

// Tile implements [verifier.Source].
func (l *collectingSource) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	content, err := l.Source.Tile(ctx, t)
	if err == nil && t.Level < 0 {
		l.collect(bundle{t, content})
	}
	return content, err
}

// collect passes bundles to the collector in order, each once. When all bundles have been read, all
// have been collected.
func (l *collectingSource) collect(h bundle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || h.tile.Index < l.next {
		return
	}
	l.ahead[h.tile.Index] = h
	for h, ok := l.ahead[l.next]; ok && l.err == nil; h, ok = l.ahead[l.next] {
		delete(l.ahead, l.next)
		l.next++
		l.err = audit.SplitBundle(h.content, h.tile.Width, func(entry []byte) error {
			e, err := l.parser.Parse(entry)
			if err != nil {
				return err
			}
			return l.collector.Add(e)
		})
	}
	if l.err != nil {
		clear(l.ahead)
	}
}

func (l *collectingSource) result() (*stats.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	return l.collector.Result()
}
