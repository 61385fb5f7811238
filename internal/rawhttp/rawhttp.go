// Package rawhttp sends requests that measure a server. Its client uses a fraction of the CPU time
// of net/http's, which would use several times as much as the server, often on the same machine.
package rawhttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

// ErrAnswer is returned when an answer uses parts of HTTP/1.1 that this package does not support.
var ErrAnswer = errors.New("cannot read the answer")

const (
	requestTimeout = 30 * time.Second
	maxBody        = 1 << 20 // size of an answer, in bytes
)

// Conn sends requests over one kept-alive connection. It connects at the first request
// and again after an error.
type Conn struct {
	Target *url.URL

	nc   net.Conn // nil while not connected
	in   *bufio.Reader
	body []byte
}

// Answer is a server's response. The body is valid until the next request.
type Answer struct {
	Status int
	Retry  time.Duration // Retry-After; 0: none
	Body   []byte
}

// Send sends one request, as [AppendRequest] writes it, and reads its answer.
func (c *Conn) Send(ctx context.Context, request []byte) (a Answer, err error) {
	if c.nc == nil {
		if err := c.Dial(ctx); err != nil {
			return a, err
		}
	}
	keep := false
	if err = c.nc.SetDeadline(time.Now().Add(requestTimeout)); err == nil {
		_, err = c.nc.Write(request)
	}
	if err == nil {
		a, keep, err = c.read()
	}
	if err != nil || !keep {
		c.Close()
	}
	return a, err
}

// Dial connects.
func (c *Conn) Dial(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	host, port := c.Target.Hostname(), "80"
	dial := new(net.Dialer).DialContext
	if c.Target.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
		dial, port = d.DialContext, "443"
	}
	if c.nc, err = dial(ctx, "tcp", net.JoinHostPort(host, cmp.Or(c.Target.Port(), port))); err != nil {
		c.nc = nil
		return err
	}
	c.in = bufio.NewReaderSize(c.nc, 16<<10)
	return nil
}

// Close closes the connection.
func (c *Conn) Close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// AppendRequest appends a request with further header lines, each including its line end. A POST has a body of
// JSON.
func AppendRequest(dst []byte, method, host, path, header, body string) []byte {
	if method == "POST" {
		header += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return append(dst, method+" "+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+header+"\r\n"+body...)
}

// read reads one answer, and reports whether the connection stays open.
//
// https://www.rfc-editor.org/rfc/rfc9112.html#section-6.3
func (c *Conn) read() (a Answer, keep bool, err error) {
	line, err := c.line()
	if err != nil {
		return a, false, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return a, false, fmt.Errorf("%w: want HTTP/1.1, it begins with %.40q", ErrAnswer, line)
	}
	if a.Status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, false, fmt.Errorf("%w: status %.40q", ErrAnswer, line)
	}
	h, err := c.header()
	if err != nil {
		return a, false, err
	}
	a.Retry = h.retry
	switch {
	case h.chunked:
		a.Body, err = c.chunks()
	case h.length >= 0:
		a.Body, err = c.more(c.body[:0], h.length)
	case a.Status != 204 && a.Status != 304:
		return a, false, fmt.Errorf("%w: no Content-Length", ErrAnswer)
	}
	return a, !h.last, err
}

// header holds the fields of an answer's header that matter here.
type header struct {
	length  int // length of the body; -1: not given
	chunked bool
	last    bool // whether the server closes the connection after this answer
	retry   time.Duration
}

func (c *Conn) header() (header, error) {
	h := header{length: -1}
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return h, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if h.length, err = strconv.Atoi(string(value)); err != nil || h.length < 0 {
				return h, fmt.Errorf("%w: Content-Length %.40q", ErrAnswer, value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			h.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			h.last = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Retry-After")):
			seconds, _ := strconv.ParseUint(string(value), 10, 16) // a date counts as 0
			h.retry = time.Duration(seconds) * time.Second
		}
	}
}

// line reads one line, without its end. The result is valid until the next read.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: line longer than %d bytes", ErrAnswer, len(line))
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// chunks reads a chunked body.
//
// https://www.rfc-editor.org/rfc/rfc9112.html#section-7.1
func (c *Conn) chunks() ([]byte, error) {
	body := c.body[:0]
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: chunk size %.20q", ErrAnswer, size)
		}
		if n == 0 {
			_, err := c.header() // the trailer
			return body, err
		}
		if body, err = c.more(body, int(n)); err != nil {
			return nil, err
		}
		if line, err = c.line(); err != nil {
			return nil, err
		}
		if len(line) > 0 {
			return nil, fmt.Errorf("%w: chunk without an end", ErrAnswer)
		}
	}
}

// more reads n bytes of the body, appends them to dst and keeps the buffer for the
// next answer.
func (c *Conn) more(dst []byte, n int) ([]byte, error) {
	at := len(dst)
	if n > maxBody-at {
		return nil, fmt.Errorf("%w: body longer than %d bytes", ErrAnswer, maxBody)
	}
	dst = append(dst, make([]byte, n)...)
	c.body = dst
	_, err := io.ReadFull(c.in, dst[at:])
	return dst, err
}
