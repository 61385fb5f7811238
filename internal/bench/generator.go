package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A generator sends requests over persistent connections and parses responses by hand. On a machine
// that also runs the server, net/http's client would dominate the measurement. Baseline and subject
// are treated the same.
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
	count     int
	took      time.Duration
	latencies []time.Duration // sorted
	statuses  map[int]int
}

func (f figures) perSecond() float64 { return float64(f.count) / f.took.Seconds() }

// quantile returns the latency that a share of the requests did not exceed.
func (f figures) quantile(q float64) time.Duration {
	if len(f.latencies) == 0 {
		return 0
	}
	return f.latencies[min(int(q*float64(len(f.latencies))), len(f.latencies)-1)]
}

// run generates the load. It fails unless every response has the expected status.
func (g generator) run(status int) (figures, error) {
	var next atomic.Int64
	start := time.Now()
	runs := make([]figures, g.conns)
	errs := make([]error, g.conns)
	var wg sync.WaitGroup
	for c := range g.conns {
		wg.Go(func() { runs[c], errs[c] = g.connection(&next, start) })
	}
	wg.Wait()
	all := figures{took: time.Since(start), statuses: map[int]int{}}
	for _, r := range runs {
		all.count += r.count
		all.latencies = append(all.latencies, r.latencies...)
		for s, n := range r.statuses {
			all.statuses[s] += n
		}
	}
	slices.Sort(all.latencies)
	if err := errors.Join(errs...); err != nil {
		return all, err
	}
	if all.statuses[status] != all.count {
		return all, fmt.Errorf("responses by status: %v, want only %d", all.statuses, status)
	}
	return all, nil
}

// connection sends requests that no other connection has taken.
func (g generator) connection(next *atomic.Int64, start time.Time) (f figures, err error) {
	conn, err := new(net.Dialer).DialContext(g.ctx, "tcp", g.addr)
	if err != nil {
		return f, err
	}
	defer conn.Close()
	f.statuses = map[int]int{}
	in := bufio.NewReaderSize(conn, 16<<10)
	var out []byte
	for {
		i := int(next.Add(1)) - 1
		if i >= g.total || g.ctx.Err() != nil || g.until > 0 && time.Since(start) > g.until {
			return f, nil
		}
		due := time.Now()
		if g.rate > 0 {
			due = start.Add(time.Duration(float64(i) / g.rate * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		out = g.request(out[:0], i)
		if _, err := conn.Write(out); err != nil {
			return f, err
		}
		status, err := readAnswer(in)
		if err != nil {
			return f, fmt.Errorf("request %d: %w", i, err)
		}
		f.latencies = append(f.latencies, time.Since(due))
		f.count++
		f.statuses[status]++
	}
}

// readAnswer reads an HTTP/1.1 response with a Content-Length.
func readAnswer(in *bufio.Reader) (status int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	length := -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			if length, err = strconv.Atoi(strings.TrimSpace(string(line[len(name):]))); err != nil {
				return 0, err
			}
		}
	}
	if length < 0 {
		return 0, errors.New("response without Content-Length")
	}
	_, err = io.CopyN(io.Discard, in, int64(length))
	return status, err
}

// getting returns the request function for GETs of a path per i.
func getting(path func(i int) string) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte {
		dst = append(dst, "GET "...)
		dst = append(dst, path(i)...)
		return append(dst, " HTTP/1.1\r\nHost: bench\r\n\r\n"...)
	}
}

// post appends a POST request with a JSON body.
func post(dst []byte, path, body string) []byte {
	dst = append(dst, "POST "...)
	dst = append(dst, path...)
	dst = append(dst, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}
