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
	// errStalled is returned when a client sends no more of a body.
	errStalled = errors.New("the request's body has stalled")
	// errBody is returned when a client disconnects while sending a body.
	errBody = errors.New("read the request's body")
)

// exchange is a request with its response. It counts what is sent, and closes the
// connection of a client that stalls.
type exchange struct {
	http.ResponseWriter
	proxy         *Proxy
	request       *http.Request
	control       *http.ResponseController
	began         time.Time
	writeDeadline time.Time // deadline for the client to accept written data
	status        int
	sent          int64
	body          *requestBody // nil: none
}

func newExchange(p *Proxy, w http.ResponseWriter, r *http.Request) *exchange {
	e := &exchange{ResponseWriter: w, proxy: p, request: r, control: http.NewResponseController(w), began: time.Now()}
	if r.Body == nil || r.Body == http.NoBody {
		return e
	}
	limited := r.Body
	if limit := p.options.Limits.Body; limit > 0 {
		limited = http.MaxBytesReader(w, limited, limit)
	}
	e.body = &requestBody{ReadCloser: limited, control: e.control, stall: p.options.Limits.Stall}
	out := *r
	out.Body = e.body
	e.request = &out
	return e
}

// finish ends the exchange after the handler has returned, or has panicked as the
// reverse proxy does when a response is cut short.
func (e *exchange) finish() {
	if e.body != nil {
		e.body.leave()
	}
	if e.status == http.StatusSwitchingProtocols {
		e.proxy.upgraded.add(-1)
	} else {
		e.bound()() // sets a deadline for what the server still writes
	}
	e.proxy.record(e)
}

// WriteHeader implements [http.ResponseWriter].
func (e *exchange) WriteHeader(status int) {
	if e.status == 0 && status >= http.StatusOK {
		e.status = status
		e.proxy.secure(e)
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (e *exchange) Write(b []byte) (int, error) {
	if e.status == 0 {
		e.status = http.StatusOK
		e.proxy.secure(e)
	}
	defer e.bound()()
	n, err := e.ResponseWriter.Write(b)
	e.sent += int64(n)
	return n, err
}

// FlushError serves [http.ResponseController].
func (e *exchange) FlushError() error {
	defer e.bound()()
	return e.control.Flush()
}

// Flush implements [http.Flusher].
func (e *exchange) Flush() { _ = e.FlushError() }

// bound sets the write deadline, and returns a function that clears it. Over HTTP/2, a deadline
// that passes between writes would end the stream; over HTTP/1 it affects writes only, and need not
// be cleared.
func (e *exchange) bound() func() {
	stall, isStream := e.proxy.options.Limits.Stall, e.request.ProtoMajor >= 2
	if now := time.Now(); isStream || e.writeDeadline.Sub(now) < stall/2 {
		e.writeDeadline = now.Add(stall)
		_ = e.control.SetWriteDeadline(e.writeDeadline) // fails for writers without deadlines
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
		return nil, nil, fmt.Errorf("hijack the connection: %w", err)
	}
	e.status = http.StatusSwitchingProtocols
	e.proxy.upgraded.add(1)
	return conn, buffer, nil
}

// requestBody is a request's body that must not stall.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration

	mu     sync.Mutex // held while the deadline is set; after leave, only the server reads the connection
	isOver bool
	until  time.Time

	hasStalled atomic.Bool // remembered, because the server then only reports a canceled request
}

// Read implements [io.Reader]. Errors: errStalled, errBody, and
// [http.MaxBytesError].
func (b *requestBody) Read(p []byte) (int, error) {
	b.wait()
	n, err := b.ReadCloser.Read(p)
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) || errors.As(err, &tooLarge):
		b.leave() // the server now reads ahead, for as long as the site takes
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.hasStalled.Store(true)
		return n, errStalled
	}
	return n, fmt.Errorf("%w: %w", errBody, err)
}

func (b *requestBody) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); !b.isOver && b.until.Sub(now) < b.stall/2 {
		b.until = now.Add(b.stall)
		_ = b.control.SetReadDeadline(b.until) // fails for readers without deadlines
	}
}

func (b *requestBody) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isOver = true
}

// exchangeOf returns the exchange behind a handler's writer.
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

// hasStalled reports whether the client has stalled while sending the body.
func (e *exchange) hasStalled() bool { return e != nil && e.body != nil && e.body.hasStalled.Load() }

// record counts and logs the exchange.
func (p *Proxy) record(e *exchange) {
	took := time.Since(e.began)
	p.counters.count(e.status, took)
	log, r := p.options.AccessLog, e.request
	if log == nil {
		return
	}
	log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request",
		slog.String("client", p.options.clientOf(r).String()), slog.String("method", r.Method),
		slog.String("host", r.Host), slog.String("path", pathOf(r)), slog.String("protocol", r.Proto),
		slog.Int("status", e.status), slog.Int64("bytes", e.sent), slog.Duration("took", took))
}

// pathOf returns a request's path for the log, without the query, which may hold
// passes and secrets of the site.
func pathOf(r *http.Request) string {
	const most = 1024
	path := r.URL.EscapedPath()
	return path[:min(len(path), most)]
}

// clientOf returns the client's address: the last in X-Forwarded-For that is not
// one of the site's proxies.
func (o *Options) clientOf(r *http.Request) netip.Addr {
	client := peerAddr(r)
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
