package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of reading a request's body.
var (
	// errStalled is returned when a client stops sending.
	errStalled = errors.New("the request's body has stalled")
	// errBody is returned when a client goes away while it sends.
	errBody = errors.New("read the request's body")
)

// exchange is one request and its answer, which it watches and bounds.
type exchange struct {
	http.ResponseWriter
	proxy    *Proxy
	request  *http.Request
	control  *http.ResponseController
	began    time.Time
	patience time.Time // until when the client may let a write wait
	status   int
	sent     int64
	body     *incoming // nil: it has none
}

func begin(p *Proxy, w http.ResponseWriter, r *http.Request) *exchange {
	e := &exchange{ResponseWriter: w, proxy: p, request: r, control: http.NewResponseController(w), began: time.Now()}
	if r.Body == nil || r.Body == http.NoBody {
		return e
	}
	limited := r.Body
	if limit := p.options.Limits.Body; limit > 0 {
		limited = http.MaxBytesReader(w, limited, limit)
	}
	e.body = &incoming{ReadCloser: limited, control: e.control, stall: p.options.Limits.Stall}
	out := *r
	out.Body = e.body
	e.request = &out
	return e
}

// end is called when the handler has returned or panics, as the reverse proxy
// does when an answer breaks off.
func (e *exchange) end() {
	if e.body != nil {
		e.body.leave()
	}
	if e.status == http.StatusSwitchingProtocols {
		e.proxy.upgraded.add(-1)
	} else {
		e.bound()() // the server writes what is left
	}
	e.proxy.note(e)
}

// WriteHeader implements [http.ResponseWriter].
func (e *exchange) WriteHeader(status int) {
	if e.status == 0 && status >= http.StatusOK {
		e.status = status
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (e *exchange) Write(b []byte) (int, error) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	defer e.bound()()
	n, err := e.ResponseWriter.Write(b)
	e.sent += int64(n)
	return n, err
}

// FlushError is for [http.ResponseController].
func (e *exchange) FlushError() error {
	defer e.bound()()
	return e.control.Flush()
}

// Flush implements [http.Flusher].
func (e *exchange) Flush() { _ = e.FlushError() }

// bound gives the client some time to take what is written now. Over HTTP/2 a
// deadline that passes between writes ends the stream, so that it is taken back
// by what is returned; on connections of HTTP/1 it counts for writes alone.
func (e *exchange) bound() func() {
	stall, isStream := e.proxy.options.Limits.Stall, e.request.ProtoMajor >= 2
	if now := time.Now(); isStream || e.patience.Sub(now) < stall/2 {
		e.patience = now.Add(stall)
		_ = e.control.SetWriteDeadline(e.patience) // of writers that have none
	}
	if !isStream {
		return func() {}
	}
	return func() { _ = e.control.SetWriteDeadline(time.Time{}) }
}

// Hijack implements [http.Hijacker].
func (e *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := e.control.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take the connection: %w", err)
	}
	e.status = http.StatusSwitchingProtocols
	e.proxy.upgraded.add(1)
	return conn, buffer, nil
}

// incoming is the body of a request, of which some byte must come in time.
type incoming struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration

	mu     sync.Mutex // held while the deadline is set: the connection is ours to read from only until leave
	isOver bool
	until  time.Time

	hasStalled atomic.Bool // the server cancels the request then, which says less
}

// Read implements [io.Reader]. Errors: errStalled, errBody, and
// [http.MaxBytesError].
func (b *incoming) Read(p []byte) (int, error) {
	b.wait()
	n, err := b.ReadCloser.Read(p)
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) || errors.As(err, &tooLarge):
		b.leave() // the server reads on by itself, for as long as the site takes
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.hasStalled.Store(true)
		return n, errStalled
	}
	return n, fmt.Errorf("%w: %w", errBody, err)
}

func (b *incoming) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); !b.isOver && b.until.Sub(now) < b.stall/2 {
		b.until = now.Add(b.stall)
		_ = b.control.SetReadDeadline(b.until) // of readers that have none
	}
}

func (b *incoming) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isOver = true
}

// exchangeOf returns the exchange that a handler writes to.
func exchangeOf(w http.ResponseWriter) *exchange {
	for {
		if e, ok := w.(*exchange); ok {
			return e
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = inner.Unwrap()
	}
}

// hasStalled tells whether the client stopped sending.
func (e *exchange) hasStalled() bool { return e != nil && e.body != nil && e.body.hasStalled.Load() }

// note has an exchange counted and logged.
func (p *Proxy) note(e *exchange) {
	took := time.Since(e.began)
	p.figures.count(e.status, took)
	log, r := p.options.AccessLog, e.request
	if log == nil {
		return
	}
	log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request",
		slog.String("client", p.options.clientOf(r).String()), slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", pathOf(r)),
		slog.String("protocol", r.Proto), slog.Int("status", e.status), slog.Int64("bytes", e.sent), slog.Duration("took", took))
}

// pathOf returns the path of a request as a log has it: without the query, for
// there are passes and secrets of the site in it.
func pathOf(r *http.Request) string {
	const most = 1024
	path := r.URL.EscapedPath()
	return path[:min(len(path), most)]
}

// clientOf returns who asks: the last in X-Forwarded-For that is no proxy of
// the site.
func (o *Options) clientOf(r *http.Request) netip.Addr {
	client := peerOf(r)
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for _, text := range slices.Backward(strings.Split(line, ",")) {
			if !o.trusts(client) {
				return client
			}
			a, err := netip.ParseAddr(strings.TrimSpace(text))
			if err != nil {
				return client
			}
			client = a.Unmap()
		}
	}
	return client
}
