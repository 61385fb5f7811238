// Package load sends a crowd to a room: visitors with tickets of their own
// join at a given rate, wait as the server tells them to, and claim when they
// are called. It measures what they experience.
//
// Every connection serves a fixed part of the visitors, one request at a time,
// so nothing is shared while it runs. With a rate, latency counts from the
// moment a request was due: a server that stalls is not excused by the
// requests that waited behind.
package load

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrUnreachable is returned when the room does not answer at all.
	ErrUnreachable = errors.New("the room cannot be reached")
	// ErrNoRoom is returned when there is no room under the URL.
	ErrNoRoom = errors.New("no room there")
)

// Options say what crowd to send.
type Options struct {
	// URL of the room, http://host/r/slug.
	URL *url.URL
	// Visitors is how many come.
	Visitors int
	// Rate is how many come a second; 0 for as fast as the server answers.
	Rate float64
	// Concurrency is the number of connections.
	Concurrency int
	// Duration is when those who still wait give up.
	Duration time.Duration
	// Progress is called about twice a second; nil for no calls.
	Progress func(Progress)
}

// Progress is how far a run has come.
type Progress struct{ Joined, Admitted, Errors int64 }

const progressEvery = 500 * time.Millisecond

// run is what the workers of a run share.
type run struct {
	Options
	origin string
	path   string   // of the room
	key    [32]byte // makes the secrets of all visitors
	start  time.Time

	joined, admitted, failed atomic.Int64
}

// Run sends the crowd and returns when everybody is done or has given up.
// Errors are [ErrUnreachable] and [ErrNoRoom]; what fails later is counted in
// the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &run{Options: o, path: strings.TrimRight(o.URL.EscapedPath(), "/")}
	_, _ = rand.Read(r.key[:]) // never fails
	workers, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	r.start = time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	var working, telling sync.WaitGroup
	done := make(chan struct{})
	telling.Go(func() { r.tell(done) })
	for _, w := range workers {
		working.Go(func() { w.work(ctx) })
	}
	working.Wait()
	close(done)
	telling.Wait()
	return r.report(workers), nil
}

// connect opens all connections and learns the room's origin.
func (r *run) connect(ctx context.Context) ([]*worker, error) {
	workers := make([]*worker, min(r.Concurrency, r.Visitors))
	for i := range workers {
		workers[i] = &worker{run: r, next: i, step: len(workers), conn: conn{target: r.URL}, failures: map[failure]uint64{}}
		if err := workers[i].conn.dial(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	a, err := workers[0].conn.do(ctx, "GET", []byte(r.path+"/checkpoint"), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	origin, _, ok := bytes.Cut(a.body, []byte("\n"))
	if a.status != http.StatusOK || !ok {
		return nil, fmt.Errorf("%w: %s answers %d", ErrNoRoom, r.path+"/checkpoint", a.status)
	}
	r.origin = string(origin)
	return workers, nil
}

func (r *run) tell(done <-chan struct{}) {
	if r.Progress == nil {
		return
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.Progress(Progress{r.joined.Load(), r.admitted.Load(), r.failed.Load()})
		case <-done:
			return
		}
	}
}
