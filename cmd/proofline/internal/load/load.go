// Package load sends a crowd of visitors to a room and measures what they
// experience. Each visitor joins with its own ticket, polls as often as the server
// asks, and claims when it is called.
//
// Every connection serves a fixed share of the visitors, one request at a time, so
// connections share no state during a run. With a rate, latency counts from the
// moment a request was due, so that a stall of the server counts against all
// requests that it delays.
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

	"github.com/proofline/proofline/internal/rawhttp"
)

var (
	// ErrUnreachable is returned when the room does not answer.
	ErrUnreachable = errors.New("the room cannot be reached")
	// ErrNoRoom is returned when the URL is not that of a room.
	ErrNoRoom = errors.New("no room at this address")
)

// Options configure a run.
type Options struct {
	// URL is the room's URL, http://host/r/slug.
	URL *url.URL
	// Visitors is the number of visitors.
	Visitors int
	// Rate is the number of visitors that arrive per second; 0: as fast as the server
	// answers.
	Rate float64
	// Concurrency is the number of connections.
	Concurrency int
	// Duration is the time after which visitors who are still waiting give up.
	Duration time.Duration
	// Progress is called about twice a second; nil: no calls.
	Progress func(Progress)
}

// Progress holds the counts of a run so far.
type Progress struct{ Joined, Admitted, Errors int64 }

const progressInterval = 500 * time.Millisecond

// run is the state that the workers share.
type run struct {
	Options
	origin string
	path   string   // path of the room's URL
	key    [32]byte // key that the visitors' secrets are derived from
	start  time.Time

	joined, admitted, failed atomic.Int64
}

// Run sends the crowd and returns when all visitors are done or have given up.
// Errors: [ErrUnreachable] and [ErrNoRoom]; the report counts later failures.
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
	var working, reporting sync.WaitGroup
	done := make(chan struct{})
	reporting.Go(func() { r.reportProgress(done) })
	for _, w := range workers {
		working.Go(func() { w.work(ctx) })
	}
	working.Wait()
	close(done)
	reporting.Wait()
	return r.report(workers), nil
}

// connect opens all connections and reads the room's origin from its checkpoint.
func (r *run) connect(ctx context.Context) ([]*worker, error) {
	workers := make([]*worker, min(r.Concurrency, r.Visitors))
	for i := range workers {
		workers[i] = &worker{
			run: r, next: i, step: len(workers), conn: rawhttp.Conn{Target: r.URL}, failures: map[failure]uint64{},
		}
		if err := workers[i].conn.Dial(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	a, err := workers[0].conn.Send(ctx,
		rawhttp.AppendRequest(nil, http.MethodGet, r.URL.Host, r.path+"/checkpoint", "", ""))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	origin, _, ok := bytes.Cut(a.Body, []byte("\n"))
	if a.Status != http.StatusOK || !ok {
		return nil, fmt.Errorf("%w: %s answered %d", ErrNoRoom, r.path+"/checkpoint", a.Status)
	}
	r.origin = string(origin)
	return workers, nil
}

func (r *run) reportProgress(done <-chan struct{}) {
	if r.Progress == nil {
		return
	}
	ticker := time.NewTicker(progressInterval)
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
