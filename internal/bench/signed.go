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

// signed measures joins whose lane needs an issuer's signature, and joins of a plain room on another server.
func (b *bench) signed(v version) (func(int) ([]reading, error), error) {
	plain, err := b.fleet.productWith(v, "plain", newBatch(), warmUp)
	if err != nil {
		return nil, err
	}
	s, err := b.fleet.product(v, "signed")
	if err != nil {
		return nil, err
	}
	club := issuertest.Signed("club", 0)
	config := dayRoom("signed")
	config["methods"] = []any{club.Method}
	config["lanes"] = []any{map[string]any{"name": "members", "weight": 1, "needs": []string{"club"}}}
	if err := s.create(config); err != nil {
		return nil, err
	}
	subject := credential.Subject{Lane: "members"}
	state, err := s.state("signed")
	if err != nil {
		return nil, err
	}
	if _, err := hex.Decode(subject.Room[:], []byte(state.Entry)); err != nil {
		return nil, fmt.Errorf("hash of the room entry: %w", err)
	}
	accounts := 0 // so far
	join := func(total int) (*load, error) {
		requests := signedRequests(club, subject, accounts, total)
		accounts += total
		return s.load(generator{conns: 256, total: total,
			request: func(dst []byte, i int) []byte { return append(dst, requests[i]...) }}, 201)
	}
	if _, err := join(warmUp); err != nil {
		return nil, err
	}
	return func(i int) ([]reading, error) {
		a, s, err := pair(i,
			func() (*load, error) {
				return plain.load(generator{conns: 256, total: signedJoins, request: joining("plain")}, 201)
			},
			func() (*load, error) { return join(signedJoins) })
		if err != nil {
			return nil, err
		}
		return ratio(signedRate, signedPlain, signedRatio, a, s), nil
	}, nil
}

// signedRequests returns the joins of a new batch of visitors, each with the credential of another account.
func signedRequests(club *issuertest.Issuer, s credential.Subject, first, n int) [][]byte {
	requests, visitors := make([][]byte, n), newBatch()
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(numbers, n/runtime.GOMAXPROCS(0)+1) {
		all.Go(func() {
			for _, i := range part {
				s := s
				s.Ticket = visitors.ticket(i)
				c := club.Show(s, first+i)
				body, _ := json.Marshal(map[string]any{"ticket": visitors.ticket(i).String(), "credentials": []any{
					map[string]string{"method": c.Method, "nullifier": hex.EncodeToString(c.Nullifier),
						"evidence": hex.EncodeToString(c.Evidence)},
				}}) // texts only
				requests[i] = rawhttp.AppendRequest(nil, "POST", "bench", "/r/signed/join", "", string(body))
			}
		})
	}
	all.Wait()
	return requests
}
