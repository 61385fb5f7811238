package main

import (
	"fmt"
	"net/http"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/rawhttp"
)

// readers is the number of visitors in line while others read.
const readers = 100_000

// state measures the document that all waiting visitors poll.
func (b *bench) state(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.productWith(v, "state", newBatch(), readers)
	if err != nil {
		return nil, err
	}
	const path = "/r/state/state"
	request := string(rawhttp.AppendRequest(nil, http.MethodGet, "bench", path, "", ""))
	return b.reading(s, path, [3]*goal{stateRate, stateEcho, stateRatio},
		func(dst []byte, _ int) []byte { return append(dst, request...) })
}

// tickets measures the status of a ticket.
func (b *bench) tickets(v version) (func(int) ([]reading, error), error) {
	n := newBatch()
	s, err := b.fleet.productWith(v, "ticket", n, readers)
	if err != nil {
		return nil, err
	}
	t := statusTemplate("ticket")
	return b.reading(s, "/r/ticket/tickets/"+n.ticket(0).String(), [3]*goal{ticketRate, ticketEcho, ticketRatio},
		func(dst []byte, i int) []byte { return t.append(dst, n.ticket(i%readers)) })
}

// tiles measures complete tiles of entries, which the server reads from PostgreSQL unless a cache in front has them.
func (b *bench) tiles(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.productWith(v, "tiles", newBatch(), readers)
	if err != nil {
		return nil, err
	}
	path := func(i int) string { return fmt.Sprintf("/r/tiles/tile/entries/%03d", i%(readers/audit.TileWidth)) }
	return b.reading(s, path(0), [3]*goal{tileRate, tileEcho, tileRatio}, func(dst []byte, i int) []byte {
		return rawhttp.AppendRequest(dst, http.MethodGet, "bench", path(i), "", "")
	})
}

// statusTemplate is the request for the status of a ticket.
func statusTemplate(slug string) template {
	return newTemplate(http.MethodGet, "/r/"+slug+"/tickets/"+place, "")
}

// reading compares a GET request with the baseline.
func (b *bench) reading(s *server, path string, goals [3]*goal,
	request func([]byte, int) []byte) (func(int) ([]reading, error), error) {
	bare, err := b.fleet.bareOf(http.MethodGet, s, path, "")
	if err != nil {
		return nil, err
	}
	load := func(s *server) func() (*load, error) {
		return func() (*load, error) { return s.load(generator{conns: 256, until: b.length, request: request}, 200) }
	}
	return func(i int) ([]reading, error) {
		a, s, err := pair(i, load(bare), load(s))
		if err != nil {
			return nil, err
		}
		return ratio(goals[0], goals[1], goals[2], a, s), nil
	}, nil
}
