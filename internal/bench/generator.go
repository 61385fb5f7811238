package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/proofline/proofline/internal/rawhttp"
)

const (
	bufferSize    = 32 << 10         // size of a connection's buffer for one answer
	answerTimeout = 30 * time.Second // time limit without an answer on any connection
)

// generator sends requests over kept-alive connections, one at a time on each. It runs an event
// loop on raw sockets, because it shares the processors with the server: a request costs it two
// system calls and no goroutine switch. Baseline and subject are treated the same.
type generator struct {
	ctx      context.Context
	addr     string // IP:port
	conns    int
	rate     float64 // requests per second, each with its own due time; 0: as fast as possible
	total    int     // requests; 0: unlimited
	until    time.Duration
	request  func(dst []byte, i int) []byte // appends request i
	answered func(i int, body []byte)       // may be nil; body is valid during the call
}

// figures are the results of one run. Latencies count from the time a request was due, so that they
// include stalls of the server.
type figures struct {
	rawhttp.Histogram
	took     time.Duration
	statuses map[int]uint64
}

func (f *figures) perSecond() float64 { return float64(f.Count) / f.took.Seconds() }

// run generates the load. It fails unless every answer has the expected status.
func (g generator) run(status int) (*figures, error) {
	loops := min(max(1, runtime.GOMAXPROCS(0)/2), g.conns)
	var next atomic.Int64
	start := time.Now()
	runs := make([]loop, loops)
	errs := make([]error, loops)
	var wg sync.WaitGroup
	for n := range runs {
		runs[n] = loop{generator: &g, next: &next, start: start, figures: figures{statuses: map[int]uint64{}}}
		share := g.conns*(n+1)/loops - g.conns*n/loops
		wg.Go(func() { errs[n] = runs[n].run(share) })
	}
	wg.Wait()
	all := &figures{took: time.Since(start), statuses: map[int]uint64{}}
	for i := range runs {
		all.Merge(&runs[i].figures.Histogram)
		for s, n := range runs[i].figures.statuses {
			all.statuses[s] += n
		}
	}
	if err := errors.Join(errs...); err != nil {
		return all, err
	}
	if all.statuses[status] != all.Count {
		return all, fmt.Errorf("answers by status: %v, want only %d", all.statuses, status)
	}
	return all, nil
}

// loop is an event loop with its share of the connections.
type loop struct {
	*generator
	figures figures
	next    *atomic.Int64 // number of the next request, shared by all loops
	start   time.Time

	poll  *poller
	all   []*client
	idle  []*client
	ahead bool // request number i is taken but not sent
	done  bool // no more requests
	i     int
	due   time.Time // due time of request i
}

// client is one connection.
type client struct {
	fd   int
	in   [bufferSize]byte
	have int // bytes in the buffer
	out  []byte
	i    int       // number of the request without an answer
	due  time.Time // due time of that request
}

func (l *loop) run(conns int) (err error) {
	if l.poll, err = newPoller(); err != nil {
		return err
	}
	defer l.poll.close()
	defer func() {
		for _, c := range l.all {
			_ = syscall.Close(c.fd)
		}
	}()
	for range conns {
		if err := l.connect(); err != nil {
			return fmt.Errorf("connect to %s: %w", l.addr, err)
		}
	}
	l.idle = append(l.idle, l.all...)
	var ready []int
	for {
		wait, err := l.send()
		if err != nil {
			return err
		}
		if l.done && len(l.idle) == len(l.all) {
			return nil
		}
		if ready, err = l.poll.wait(ready[:0], wait); err != nil {
			return err
		}
		if len(ready) == 0 && wait == answerTimeout && time.Since(l.due) > wait {
			return fmt.Errorf("no answer from %s in %v", l.addr, answerTimeout)
		}
		for _, n := range ready {
			if err := l.receive(l.all[n]); err != nil {
				return err
			}
		}
	}
}

// connect opens a connection.
func (l *loop) connect() error {
	to, err := netip.ParseAddrPort(l.addr)
	if err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	l.all = append(l.all, &client{fd: fd})
	return errors.Join(
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		syscall.SetNonblock(fd, true),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		l.poll.add(fd, len(l.all)-1),
	)
}

// send sends the requests that are due while connections are idle. It returns how long to wait for
// answers.
func (l *loop) send() (wait time.Duration, err error) {
	for len(l.idle) > 0 && l.take() {
		if now := time.Now(); l.rate > 0 && l.due.After(now) {
			return l.due.Sub(now), nil
		}
		l.ahead = false
		c := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		c.i, c.due = l.i, l.due
		c.out = l.request(c.out[:0], c.i)
		if n, err := syscall.Write(c.fd, c.out); err != nil || n < len(c.out) {
			return 0, fmt.Errorf("request %d: wrote %d of %d bytes: %w", c.i, n, len(c.out), err)
		}
	}
	return answerTimeout, nil
}

// take takes the number of the next request, and reports whether there is one.
func (l *loop) take() bool {
	if l.ahead || l.done {
		return l.ahead
	}
	now := time.Now()
	l.i = int(l.next.Add(1)) - 1
	if l.total > 0 && l.i >= l.total || l.ctx.Err() != nil || l.until > 0 && now.Sub(l.start) > l.until {
		l.done = true
		return false
	}
	l.ahead, l.due = true, now
	if l.rate > 0 {
		l.due = l.start.Add(time.Duration(float64(l.i) / l.rate * float64(time.Second)))
	}
	return true
}

// receive reads from a connection. After a whole answer, it sends the next request.
func (l *loop) receive(c *client) error {
	n, err := syscall.Read(c.fd, c.in[c.have:])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return nil
	case err != nil || n == 0:
		return fmt.Errorf("request %d: the server closed the connection: %w", c.i, err)
	}
	c.have += n
	status, body, whole, err := parse(c.in[:c.have])
	if err == nil && !whole && c.have == len(c.in) {
		err = fmt.Errorf("the answer exceeds %d bytes", len(c.in))
	}
	if err != nil || !whole {
		return err
	}
	l.figures.Add(time.Since(c.due))
	l.figures.statuses[status]++
	if l.answered != nil {
		l.answered(c.i, body)
	}
	c.have = 0
	l.idle = append(l.idle, c)
	_, err = l.send()
	return err
}

// parse parses an answer with a Content-Length, which is how the measured servers send it. whole
// reports whether nothing is missing.
func parse(in []byte) (status int, body []byte, whole bool, err error) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, nil, false, nil
	}
	if end < len("HTTP/1.1 200") || !bytes.HasPrefix(in, []byte("HTTP/1.1 ")) {
		return 0, nil, false, fmt.Errorf("not HTTP/1.1: %.40q", in)
	}
	if status, err = strconv.Atoi(string(in[9:12])); err != nil {
		return 0, nil, false, fmt.Errorf("not HTTP/1.1: %.40q", in)
	}
	const name = "\r\nContent-Length: "
	size := 0
	if at := bytes.Index(in[:end], []byte(name)); at >= 0 {
		value, _, _ := bytes.Cut(in[at+len(name):end+2], []byte("\r"))
		if size, err = strconv.Atoi(string(value)); err != nil {
			return 0, nil, false, fmt.Errorf("invalid Content-Length %.20q", value)
		}
	} else if status != 204 && status != 304 {
		return 0, nil, false, fmt.Errorf("answer %d without Content-Length", status)
	}
	body = in[end+4:]
	if len(body) > size {
		return 0, nil, false, fmt.Errorf("%d bytes after the answer", len(body)-size)
	}
	return status, body, len(body) == size, nil
}
