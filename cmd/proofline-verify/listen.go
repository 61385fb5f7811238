package main

import (
	"context"
	"sync"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/stats"
)

// listener is a source that hands what an audit reads to a collector too, so
// that both are about the same bytes. What it collects is worth something if
// the audit passes. An audit reads ahead by some bundles, and so many are held.
type listener struct {
	verifier.Source

	mu        sync.Mutex // guards what follows
	collector *stats.Collector
	parser    fairness.Parser
	ahead     map[uint64]heard // bundles after next, by index
	next      uint64           // the bundle to collect
	err       error            // the first one
}

type heard struct {
	tile    audit.Tile
	content []byte
}

func listen(src verifier.Source, c *stats.Collector) *listener {
	return &listener{Source: src, collector: c, ahead: map[uint64]heard{}}
}

// Tile implements [verifier.Source].
func (l *listener) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	content, err := l.Source.Tile(ctx, t)
	if err == nil && t.Level < 0 {
		l.hear(heard{t, content})
	}
	return content, err
}

// hear collects bundles in order, each once. It returns after the last one
// that is at hand: when all have been read, all are collected.
func (l *listener) hear(h heard) {
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

func (l *listener) result() (*stats.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	return l.collector.Result()
}
