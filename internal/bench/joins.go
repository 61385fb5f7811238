package main

import (
	"fmt"
	"net/http"
	"time"
)

const (
	warmUp   = 20_000 // joins before the first measured one
	manyOnes = 1_000  // rooms at once
)

// joins measures durable joins, each with a receipt.
func (b *bench) joins(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.productWith(v, "joins", newBatch(), warmUp)
	if err != nil {
		return nil, err
	}
	bare, err := b.fleet.bareOf(http.MethodPost, s, "/r/joins/join", `{"ticket":"`+newBatch().ticket(0).String()+`"}`)
	if err != nil {
		return nil, err
	}
	return func(i int) (all []reading, err error) {
		for _, r := range []struct {
			conns           int
			rate, echo, are *goal
		}{{64, joins64, joinsEcho64, joinsRatio64}, {256, joins256, joinsEcho256, joinsRatio256}} {
			load := func(s *server, status int) func() (*load, error) {
				return func() (*load, error) {
					return s.load(generator{conns: r.conns, until: b.length, request: joining("joins")}, status)
				}
			}
			a, s, err := pair(i, load(bare, 200), load(s, 201))
			if err != nil {
				return nil, err
			}
			all = append(all, ratio(r.rate, r.echo, r.are, a, s)...)
		}
		return all, nil
	}, nil
}

// latency measures joins that arrive at half of the rate that the server has just reached.
func (b *bench) latency(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.productWith(v, "latency", newBatch(), warmUp)
	if err != nil {
		return nil, err
	}
	return func(int) ([]reading, error) {
		full, err := s.load(generator{conns: 256, until: b.length, request: joining("latency")}, 201)
		if err != nil {
			return nil, err
		}
		half, err := s.load(generator{conns: 256, rate: full.perSecond() / 2, until: 2 * b.length,
			request: joining("latency")}, 201)
		if err != nil {
			return nil, err
		}
		return []reading{
			{goal: latencyLoad, value: half.perSecond(), cost: half.cost},
			{goal: latency50, value: milliseconds(half.Quantile(0.5))},
			{goal: latency99, value: milliseconds(half.Quantile(0.99))},
			{goal: latencyMax, value: milliseconds(half.Max)},
		}, nil
	}, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// manyRooms measures joins that spread over many rooms of a server, and joins in the only room of
// another.
func (b *bench) manyRooms(v version) (func(int) ([]reading, error), error) {
	one, err := b.fleet.productWith(v, "one", newBatch(), warmUp)
	if err != nil {
		return nil, err
	}
	many, err := b.fleet.product(v, "many")
	if err != nil {
		return nil, err
	}
	if err := many.createMany(); err != nil {
		return nil, err
	}
	return func(i int) ([]reading, error) {
		a, s, err := pair(i,
			func() (*load, error) {
				return one.load(generator{conns: 256, until: b.length, request: joining("one")}, 201)
			},
			func() (*load, error) {
				return many.load(generator{conns: 256, until: b.length, request: spreading()}, 201)
			})
		if err != nil {
			return nil, err
		}
		return ratio(roomsMany, roomsOne, roomsRatio, a, s), nil
	}, nil
}

// createMany creates many rooms with one visitor each.
func (s *server) createMany() error {
	for i := range manyOnes {
		if err := s.create(dayRoom(numbered(i))); err != nil {
			return err
		}
	}
	_, err := s.load(generator{conns: 64, total: manyOnes, request: spreading()}, 201)
	return err
}

func numbered(i int) string { return fmt.Sprintf("room-%03d", i) }

// spreading returns the requests of a new batch of visitors who join all rooms of createMany in
// turn.
func spreading() func([]byte, int) []byte {
	n, rooms := newBatch(), make([]template, manyOnes)
	for i := range rooms {
		rooms[i] = joinTemplate(numbered(i))
	}
	return func(dst []byte, i int) []byte { return rooms[i%manyOnes].append(dst, n.ticket(i)) }
}
