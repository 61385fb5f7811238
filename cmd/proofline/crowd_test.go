package main

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

const (
	joiners = 8
	loyal   = 2 // joiners that only use the first node
	retry   = 25 * time.Millisecond
	settle  = 40 * time.Second // for open requests at the end
)

// crowd joins and claims without pause, retries until it gets a response, and records all responses.
type crowd struct {
	room  wire.Room
	nodes []*api.Client
	halt  chan struct{}
	wg    sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	joined   []api.Joined
	admitted []string // tickets
	byNode   map[string]int
	through  []string             // the node of each join
	last     map[string]time.Time // time of the latest join through each node
	longest  map[string]time.Duration
	failed   int
}

// gather starts a crowd on a room that the nodes serve.
func gather(t *testing.T, room wire.Room, nodes ...string) *crowd {
	c := &crowd{
		room: room, halt: make(chan struct{}),
		byNode: map[string]int{}, last: map[string]time.Time{}, longest: map[string]time.Duration{},
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: joiners}}
	for _, url := range nodes {
		c.nodes = append(c.nodes, &api.Client{Base: url + "/r/" + room.Slug, HTTP: client})
	}
	for i := range joiners {
		c.wg.Go(func() { c.visit(t, i, i < loyal) })
	}
	t.Cleanup(c.stop)
	return c
}

// stop stops the crowd once its open requests have got responses.
func (c *crowd) stop() {
	c.mu.Lock()
	select {
	case <-c.halt:
	default:
		close(c.halt)
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// visit joins and claims for one visitor after the other. A loyal one only uses the
// first node.
func (c *crowd) visit(t *testing.T, turn int, isLoyal bool) {
	_, origin, _ := strings.Cut(c.room.URL, "://")
	for ; ; turn++ {
		select {
		case <-c.halt:
			return
		default:
		}
		var secret [fairness.SecretSize]byte
		_, _ = rand.Read(secret[:])
		ticket := fairness.NewTicket(origin, secret).String()
		nodes := c.nodes
		if isLoyal {
			nodes = nodes[:1]
		}
		if !c.insist(t, nodes, turn,
			func(ctx context.Context, node *api.Client) error { return c.join(ctx, node, ticket) }) {
			return
		}
		if turn%4 == 0 {
			other := turn + 1
			c.wg.Go(func() {
				c.insist(t, nodes, other,
					func(ctx context.Context, node *api.Client) error { return c.claim(ctx, node, ticket, secret) })
			})
		}
	}
}

var errNotYet = errors.New("not called before the crowd stopped")

// insist asks one node after the other until it gets a response.
func (c *crowd) insist(t *testing.T, nodes []*api.Client, turn int, ask func(context.Context, *api.Client) error) bool {
	ctx := t.Context()
	var end <-chan time.Time
	halt := c.halt
	for ; ; turn++ {
		err := ask(ctx, nodes[turn%len(nodes)])
		problem := (*api.Problem)(nil)
		switch {
		case err == nil:
			return true
		case errors.Is(err, errNotYet):
			return true
		case errors.Is(err, api.ErrNotCalled):
		case errors.As(err, &problem) && problem.Status < 500, // 404 too, because the ticket exists
			problem == nil && !errors.Is(err, api.ErrUnreachable):
			t.Errorf("a visitor is answered %v", err)
			return false
		default:
			c.mu.Lock()
			c.failed++
			c.mu.Unlock()
		}
		select {
		case <-time.After(retry):
		case <-halt:
			halt, end = nil, time.After(settle)
		case <-end:
			t.Errorf("no answer within %s: %v", settle, err)
			return false
		}
	}
}

func (c *crowd) join(ctx context.Context, node *api.Client, ticket string) error {
	j, err := node.Join(ctx, ticket)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined, c.through = append(c.joined, j), append(c.through, node.Base)
	c.byNode[node.Base]++
	now := time.Now()
	if last, ok := c.last[node.Base]; ok {
		c.longest[node.Base] = max(c.longest[node.Base], now.Sub(last))
	}
	c.last[node.Base] = now
	return nil
}

func (c *crowd) claim(ctx context.Context, node *api.Client, ticket string, secret [fairness.SecretSize]byte) error {
	_, err := node.Claim(ctx, ticket, secret)
	if errors.Is(err, api.ErrNotCalled) {
		select {
		case <-c.halt:
			return errNotYet
		default:
		}
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted = append(c.admitted, ticket)
	return nil
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.joined)
}

func (c *crowd) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *crowd) joinsByNode() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byNode)
}

// at returns the name of a node in the crowd's counts.
func (c *crowd) at(url string) string { return url + "/r/" + c.room.Slug }

// resetPauses starts measuring the pauses between joins.
func (c *crowd) resetPauses() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.last)
	clear(c.longest)
}

// pause returns the longest time without a join through a node.
func (c *crowd) pause(url string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.longest[c.at(url)].Round(time.Millisecond)
}

// all returns every response to a join so far.
func (c *crowd) all() []api.Joined {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.joined)
}

// latest returns the n latest tickets that joined through a node.
func (c *crowd) latest(url string, n int) (tickets []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.joined) - 1; i >= 0 && len(tickets) < n; i-- {
		if c.through[i] == c.at(url) {
			tickets = append(tickets, c.joined[i].Ticket)
		}
	}
	return tickets
}

// finish stops the crowd, ends the room, and compares the transcript with all responses.
func (c *crowd) finish(t *testing.T, organizer *api.Client) {
	t.Helper()
	c.stop()
	var ended wire.Room
	if _, err := organizer.Call(t.Context(), http.MethodPost, "/v1/rooms/"+c.room.Slug+"/end", nil,
		&ended); err != nil {
		t.Fatal(err)
	}
	url := organizer.Base + "/r/" + c.room.Slug
	auditUntil(t, url, c.room.VKey, ended.Size)
	published, err := transcript.Read(t.Context(), url, c.room.VKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.joined {
		if err := published.CheckReceipt(&c.joined[i]); err != nil {
			t.Error(err)
		}
	}
	arrivals, places, admitted := c.read(t, published)
	if arrivals != len(c.joined) {
		t.Errorf("%d joined, the transcript has %d arrivals", len(c.joined), arrivals)
	}
	for _, ticket := range c.admitted {
		if !admitted[ticket] {
			t.Errorf("%s has a pass, but the transcript has no admission of it", ticket)
		}
	}
	if len(c.joined) < 50 || len(c.admitted) == 0 || len(places) == 0 {
		t.Errorf("too little happened: %d joined, %d admitted, %d places", len(c.joined), len(c.admitted), len(places))
	}
	t.Logf("%d joined, %d admitted, %d places, %d requests failed meanwhile", len(c.joined), len(c.admitted),
		len(places), c.failed)
}

// read counts a transcript's entries by parsing their text, and checks that no position and no ticket occurs
// twice.
func (c *crowd) read(t *testing.T, published *transcript.Transcript) (arrivals int, places map[string]string,
	admitted map[string]bool) {
	t.Helper()
	places, admitted = map[string]string{}, map[string]bool{}
	arrived := map[string]bool{}
	for i, entry := range published.Entries {
		switch f := strings.Fields(string(entry)); f[0] {
		case "arrive": // arrive time window seq ticket lane
			arrivals++
			if arrived[f[4]] {
				t.Errorf("entry %d: %s arrives twice", i, f[4])
			}
			arrived[f[4]] = true
		case "assign": // assign window lane position ticket
			if other, taken := places[f[3]]; taken {
				t.Errorf("entry %d: position %s of %s is also given to %s", i, f[3], other, f[4])
			}
			places[f[3]] = f[4]
		case "admit": // admit time ticket pass
			admitted[f[2]] = true
		}
	}
	return arrivals, places, admitted
}
