package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/wire"
)

const (
	claimEvery = 4                // of so many visitors one claims
	again      = time.Second      // pause of a visitor before a request is repeated; up to half as long again
	patience   = 20 * time.Second // for one response: a join may wait for the database for 15 s
	maxWaiting = 4_000            // visitors with an open request, above which no more arrive
	settle     = 45 * time.Second // for open requests at the end
)

// crowd is visitors who join a room at a rate, and claim. They repeat a request until they get a
// response that settles it.
type crowd struct {
	room   wire.Room
	url    string // of the room
	client *http.Client
	ctx    context.Context
	cancel context.CancelFunc
	halt   chan struct{}
	done   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	receipts []wire.Joined
	passes   []string // tickets that have one
	waiting  int      // open joins and claims
	failed   int      // requests without an answer, or with status 500 and above
	refused  []error  // answers that no visitor should get
	pauses   pauses
}

func startCrowd(ctx context.Context, room wire.Room, url string, rate float64) *crowd {
	c := &crowd{room: room, url: url, halt: make(chan struct{}), client: &http.Client{Timeout: patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.done.Go(func() { c.arrive(rate) })
	return c
}

// arrive lets visitors arrive at the rate, whether earlier ones are answered or not.
func (c *crowd) arrive(rate float64) {
	begun := time.Now()
	for n := 0; ; n++ {
		due := begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		select {
		case <-time.After(time.Until(due)):
		case <-c.halt:
			return
		case <-c.ctx.Done():
			return
		}
		if c.open(1) > maxWaiting {
			c.open(-1)
			continue
		}
		c.done.Go(func() {
			defer c.open(-1)
			c.visit(n%claimEvery == 0)
		})
	}
}

// open counts visitors with an open request.
func (c *crowd) open(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += n
	return c.waiting
}

func (c *crowd) visit(claims bool) {
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:]) // never fails
	ticket := fairness.NewTicket(c.room.Origin, secret).String()
	var joined wire.Joined
	if !c.insist("/join", map[string]string{"ticket": ticket}, &joined) {
		return
	}
	c.mu.Lock()
	c.receipts = append(c.receipts, joined)
	c.pauses.tick(time.Now())
	c.mu.Unlock()
	if !claims {
		return
	}
	body := map[string]string{"secret": base64.RawURLEncoding.EncodeToString(secret[:])}
	if c.insist("/tickets/"+ticket+"/claim", body, &wire.Pass{}) {
		c.mu.Lock()
		c.passes = append(c.passes, ticket)
		c.mu.Unlock()
	}
}

var (
	errNotCalled = errors.New("not called yet")
	errRefused   = errors.New("refused")
)

// insist repeats a request until it is answered. After the end of the crowd, a claim that is not
// called yet is given up.
func (c *crowd) insist(path string, body, result any) bool {
	for {
		err := c.post(path, body, result)
		if err == nil {
			return true
		}
		if c.ctx.Err() != nil {
			return false
		}
		isOver := false
		select {
		case <-c.halt:
			isOver = true
		default:
		}
		switch {
		case errors.Is(err, errNotCalled) && isOver:
			return false
		case errors.Is(err, errNotCalled):
		case errors.Is(err, errRefused):
			c.mu.Lock()
			c.refused = append(c.refused, err)
			c.mu.Unlock()
			return false
		default:
			c.mu.Lock()
			c.failed++
			c.mu.Unlock()
		}
		select {
		case <-time.After(again + mathrand.N(again/2)): //nolint:gosec // no secret
		case <-c.ctx.Done():
			return false
		}
	}
}

func (c *crowd) post(path string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusAccepted:
		return errNotCalled
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return fmt.Errorf("status %d", resp.StatusCode)
	case resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%w: POST %s: %d %s", errRefused, path, resp.StatusCode, strings.TrimSpace(string(answer)))
	}
	return json.Unmarshal(answer, result)
}

// count returns the number of receipts.
func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.receipts)
}

// restart measures pauses from now on.
func (c *crowd) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses = pauses{last: time.Now()}
}

// stop lets nobody arrive any more, and waits for open requests.
func (c *crowd) stop() {
	close(c.halt)
	timer := time.AfterFunc(settle, c.cancel)
	defer timer.Stop()
	c.done.Wait()
	c.cancel()
}
