package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/rawhttp"
)

// load is the result of a load.
type load struct {
	*figures
	cost *cost
}

// load puts a load on the server. It fails unless every answer has the status.
func (s *server) load(g generator, status int) (*load, error) {
	g.ctx, g.addr = s.ctx, s.addr
	before, err := s.usage()
	if err != nil {
		return nil, err
	}
	f, err := g.run(status)
	if err != nil {
		return nil, err
	}
	after, err := s.usage()
	return &load{f, costOf(before, after, f.Count)}, err
}

// pair measures two subjects in turn. Every other time, the second one comes first.
func pair(i int, first, second func() (*load, error)) (one, two *load, err error) {
	var errOne, errTwo error
	if i%2 == 0 {
		one, errOne = first()
		two, errTwo = second()
	} else {
		two, errTwo = second()
		one, errOne = first()
	}
	return one, two, errors.Join(errOne, errTwo)
}

// ratio returns the readings of a paired baseline and subject.
func ratio(rate, baseRate, of *goal, baseline, subject *load) []reading {
	return []reading{
		{goal: rate, value: subject.perSecond(), cost: subject.cost},
		{goal: baseRate, value: baseline.perSecond(), cost: baseline.cost},
		{goal: of, value: subject.perSecond() / baseline.perSecond()},
	}
}

// batch numbers the groups of visitors that load makes, so that no ticket is used twice.
type batch int

// batches is the number of the latest batch.
var batches batch

func newBatch() batch {
	batches++
	return batches
}

// secret returns the secret of a visitor.
func (n batch) secret(i int) [fairness.SecretSize]byte {
	var number [16]byte
	binary.BigEndian.PutUint64(number[:], uint64(n))
	binary.BigEndian.PutUint64(number[8:], uint64(i))
	return sha256.Sum256(number[:])
}

// ticket returns the ticket of a visitor. Rooms derive tickets from secrets only at a claim, so any
// origin will do for joins.
func (n batch) ticket(i int) fairness.Ticket { return fairness.NewTicket("bench", n.secret(i)) }

// template is a prepared request that only lacks the ticket.
type template struct{ before, after string }

// place stands for the ticket in the path or body of a template.
var place = fairness.Ticket{}.String()

func newTemplate(method, path, body string) template {
	text := string(rawhttp.AppendRequest(nil, method, "bench", path, "", body))
	before, after, _ := strings.Cut(text, place)
	return template{before, after}
}

func (t template) append(dst []byte, ticket fairness.Ticket) []byte {
	return append(append(append(dst, t.before...), ticket.String()...), t.after...)
}

// joinTemplate is the request that joins a room.
func joinTemplate(slug string) template {
	return newTemplate("POST", "/r/"+slug+"/join", `{"ticket":"`+place+`"}`)
}

// joining returns the requests of a new batch of visitors.
func joining(slug string) func([]byte, int) []byte { return newBatch().joining(slug) }

func (n batch) joining(slug string) func([]byte, int) []byte {
	t := joinTemplate(slug)
	return func(dst []byte, i int) []byte { return t.append(dst, n.ticket(i)) }
}

// dayRoom is a room with a single window that stays open, and no limit to its line.
func dayRoom(slug string) map[string]any {
	return map[string]any{"slug": slug, "windows": []any{map[string]any{"length": "24h"}}, "max_waiting": 0}
}

// fill makes a batch of visitors join a room, without measuring.
func (s *server) fill(slug string, n batch, people int) error {
	if _, err := s.load(generator{conns: 256, total: people, request: n.joining(slug)}, 201); err != nil {
		return fmt.Errorf("fill room %s: %w", slug, err)
	}
	return nil
}
