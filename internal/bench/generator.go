package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/internal/rawhttp"
)

// A generator sends requests over persistent connections. Baseline and subject are treated the same.
type generator struct {
	ctx     context.Context
	addr    string // host:port
	conns   int
	rate    float64 // requests per second, each with its own due time; 0: as fast as possible
	total   int
	until   time.Duration                  // duration; 0: unlimited
	request func(dst []byte, i int) []byte // appends request i
}

// figures are the results of one run. Latencies count from the time a request was due, so that they
// include stalls of the server.
type figures struct {
	rawhttp.Histogram
	took     time.Duration
	statuses map[int]uint64
}

func (f *figures) perSecond() float64 { return float64(f.Count) / f.took.Seconds() }

// run generates the load. It fails unless every response has the expected status.
func (g generator) run(status int) (*figures, error) {
	var next atomic.Int64
	start := time.Now()
	runs := make([]figures, g.conns)
	errs := make([]error, g.conns)
	var wg sync.WaitGroup
	for c := range g.conns {
		wg.Go(func() { errs[c] = g.connection(&runs[c], &next, start) })
	}
	wg.Wait()
	all := &figures{took: time.Since(start), statuses: map[int]uint64{}}
	for i := range runs {
		all.Merge(&runs[i].Histogram)
		for s, n := range runs[i].statuses {
			all.statuses[s] += n
		}
	}
	if err := errors.Join(errs...); err != nil {
		return all, err
	}
	if all.statuses[status] != all.Count {
		return all, fmt.Errorf("responses by status: %v, want only %d", all.statuses, status)
	}
	return all, nil
}

// connection sends requests that no other connection has taken.
func (g generator) connection(f *figures, next *atomic.Int64, start time.Time) error {
	conn := rawhttp.Conn{Target: &url.URL{Host: g.addr}}
	defer conn.Close()
	f.statuses = map[int]uint64{}
	var out []byte
	for {
		i := int(next.Add(1)) - 1
		if i >= g.total || g.ctx.Err() != nil || g.until > 0 && time.Since(start) > g.until {
			return nil
		}
		due := time.Now()
		if g.rate > 0 {
			due = start.Add(time.Duration(float64(i) / g.rate * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		out = g.request(out[:0], i)
		a, err := conn.Send(g.ctx, out)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		f.Add(time.Since(due))
		f.statuses[a.Status]++
	}
}

// getting returns the request function for GETs of a path per i.
func getting(path func(i int) string) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte {
		return rawhttp.AppendRequest(dst, "GET", "bench", path(i), "", "")
	}
}
