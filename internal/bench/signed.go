package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/rawhttp"
)

// signedJoins is the number of joins in a run. An issuer signs for all of them before the run, because that takes
// longer than what is measured.
const signedJoins = 60_000

// signedRoom is an open room on its own server. Its lane needs an issuer's signature.
type signedRoom struct {
	*server
	slug     string
	issuer   *issuertest.Issuer
	subject  credential.Subject // without a ticket
	visitors batch              // each is an account of the issuer with the same number
	joined   int
}

// signedRoom starts a version's server with such a room.
func (f *fleet) signedRoom(v version, slug string) (*signedRoom, error) {
	s, err := f.product(v, slug)
	if err != nil {
		return nil, err
	}
	r := &signedRoom{server: s, slug: slug, issuer: issuertest.Signed("club", 0), visitors: newBatch(),
		subject: credential.Subject{Lane: "members"}}
	config := dayRoom(slug)
	club := r.issuer.Method
	config["methods"] = []any{club}
	config["lanes"] = []any{map[string]any{"name": r.subject.Lane, "weight": 1, "needs": []string{club.Name}}}
	if err := s.create(config); err != nil {
		return nil, err
	}
	state, err := s.state(slug)
	if err != nil {
		return nil, err
	}
	if _, err := hex.Decode(r.subject.Room[:], []byte(state.Entry)); err != nil {
		return nil, fmt.Errorf("hash of the room entry: %w", err)
	}
	return r, nil
}

// signed measures joins whose lane needs an issuer's signature, and joins of a plain room on another server.
func (b *bench) signed(v version) (func(int) ([]reading, error), error) {
	plain, err := b.fleet.productWith(v, "plain", newBatch(), warmUp)
	if err != nil {
		return nil, err
	}
	r, err := b.fleet.signedRoom(v, "signed")
	if err != nil {
		return nil, err
	}
	if _, err := r.join(warmUp); err != nil {
		return nil, err
	}
	return func(i int) ([]reading, error) {
		a, s, err := pair(i,
			func() (*load, error) {
				return plain.load(generator{conns: 256, total: signedJoins, request: joining("plain")}, 201)
			},
			func() (*load, error) { return r.join(signedJoins) })
		if err != nil {
			return nil, err
		}
		return ratio(signedRate, signedPlain, signedRatio, a, s), nil
	}, nil
}

// join makes new visitors join.
func (r *signedRoom) join(total int) (*load, error) {
	requests := r.requests(total)
	r.joined += total
	return r.load(generator{conns: 256, total: total,
		request: func(dst []byte, i int) []byte { return append(dst, requests[i]...) }}, 201)
}

// requests returns the joins of the next visitors.
func (r *signedRoom) requests(n int) [][]byte {
	requests, numbers := make([][]byte, n), make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(numbers, n/runtime.GOMAXPROCS(0)+1) {
		all.Go(func() {
			for _, i := range part {
				s, t := r.subject, r.visitors.ticket(r.joined+i)
				s.Ticket = t
				c := r.issuer.Show(s, r.joined+i)
				body, _ := json.Marshal(map[string]any{"ticket": t.String(), "credentials": []any{
					map[string]string{"method": c.Method, "nullifier": hex.EncodeToString(c.Nullifier),
						"evidence": hex.EncodeToString(c.Evidence)},
				}}) // texts only
				requests[i] = rawhttp.AppendRequest(nil, "POST", "bench", "/r/"+r.slug+"/join", "", string(body))
			}
		})
	}
	all.Wait()
	return requests
}
