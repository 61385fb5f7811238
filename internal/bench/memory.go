package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// memory measures servers that have just started: what visitors add while they join, and many rooms.
func (b *bench) memory(v version) (func(int) ([]reading, error), error) {
	return func(i int) ([]reading, error) {
		line, err := b.lineMemory(v, fmt.Sprintf("memory-%d", i))
		if err != nil {
			return nil, err
		}
		rooms, err := b.roomsMemory(v, fmt.Sprintf("memory-rooms-%d", i))
		return append(line, rooms...), err
	}, nil
}

// lineMemory measures a server before and after a quarter of the visitors join. Those who join before
// warm it up: its garbage then has the memory that it takes under load.
func (b *bench) lineMemory(v version, name string) ([]reading, error) {
	people := b.visitors / 4
	s, err := b.fleet.product(v, name, "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	metrics, err := s.metricsURL()
	if err != nil {
		return nil, err
	}
	for _, slug := range []string{"first", "line"} {
		if err := s.create(dayRoom(slug)); err != nil {
			return nil, err
		}
	}
	if err := s.fill("first", newBatch(), 5*warmUp); err != nil {
		return nil, err
	}
	heapBefore, err := s.heap(metrics)
	if err != nil {
		return nil, err
	}
	before, err := s.rss()
	if err != nil {
		return nil, err
	}
	if err := s.fill("line", newBatch(), people); err != nil {
		return nil, err
	}
	after, err := s.rss()
	if err != nil {
		return nil, err
	}
	heapAfter, err := s.heap(metrics)
	if err != nil {
		return nil, err
	}
	return []reading{
		{goal: memoryVisitor, value: (after - before) / float64(people), size: people},
		{goal: memoryHeap, value: (heapAfter - heapBefore) / float64(people), size: people},
	}, b.fleet.discard(s)
}

// roomsMemory measures a server before and after the creation of many rooms with a visitor each.
func (b *bench) roomsMemory(v version, name string) ([]reading, error) {
	s, err := b.fleet.product(v, name)
	if err != nil {
		return nil, err
	}
	before, err := s.rss()
	if err != nil {
		return nil, err
	}
	if err := s.createMany(); err != nil {
		return nil, err
	}
	after, err := s.rss()
	if err != nil {
		return nil, err
	}
	list := []reading{{goal: memoryRooms, value: after / 1e6}, {goal: memoryIdle, value: before / 1e6}}
	return list, b.fleet.discard(s)
}

// metricsURL returns the URL of the server's metrics, which it prints at its start.
func (s *server) metricsURL() (string, error) {
	select {
	case url := <-s.metrics:
		return url, nil
	case <-time.After(10 * time.Second):
		return "", errors.New("the server prints no address of its metrics")
	}
}

// heap collects the server's garbage, and returns the bytes that remain on its heap.
func (s *server) heap(metrics string) (float64, error) {
	if _, _, err := download(s.ctx, strings.TrimSuffix(metrics, "metrics")+"debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	text, _, err := download(s.ctx, metrics)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("the server's metrics have no go_memstats_heap_alloc_bytes")
}
