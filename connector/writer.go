package connector

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// writer looks at the headers of the site's answer before they are sent.
type writer struct {
	http.ResponseWriter
	c      *Connector
	visit  *visit
	isDone bool
	isKept bool // the session goes on
}

// finish does what the site says, and keeps the session going. It does so once.
func (w *writer) finish() {
	if w.isDone {
		return
	}
	w.isDone = true
	defer w.recover()
	h := w.Header()
	commands := h[CommandHeader]
	delete(h, CommandHeader)
	v := w.visit
	if v.session == nil {
		return
	}
	if slices.Contains(commands, "release") {
		w.c.release(v.door, v.session)
		h.Add("Set-Cookie", noCookie(v.door))
		return
	}
	w.keep(h)
}

// recover makes little of a fault of ours: the visitor gets the site's answer.
func (w *writer) recover() {
	if fault := recover(); fault != nil {
		w.c.failed("an answer", fault)
	}
}

// keep has the session begin or go on. It does so once.
func (w *writer) keep(h http.Header) {
	v := w.visit
	if w.isKept || v.session == nil {
		return
	}
	w.isKept = true
	if v.isNew {
		w.begin(h)
		return
	}
	if v.isDue && !isShared(h) && w.c.extend(v.door, v.session, w.c.options.Now()) {
		h.Add("Set-Cookie", w.c.cookieOf(v.door, v.session))
	}
}

// extend has a session go on from now, or for as long as its sockets have had it
// go on already. False: it was told just now, and others have the cookie.
func (c *Connector) extend(d *door, v *session, now time.Time) bool {
	if c.touch(d, v, now) {
		v.slide(now)
		c.sockets.slide(v)
		return true
	}
	ends := c.sockets.ends(v.pass)
	if ends <= v.ends {
		return false
	}
	v.issued, v.ends = now.UnixMilli(), ends
	return true
}

// begin has a free session begin, or end at once where others would get it.
func (w *writer) begin(h http.Header) {
	if isShared(h) {
		w.visit.door.link.gate.end(w.visit.session)
		return
	}
	h.Add("Set-Cookie", w.c.cookieOf(w.visit.door, w.visit.session))
}

// isShared tells whether caches may give an answer to others, who must not get
// the cookie.
func isShared(h http.Header) bool {
	return slices.ContainsFunc(h["Cache-Control"], func(line string) bool {
		line = strings.ToLower(line)
		return strings.Contains(line, "public") || strings.Contains(line, "s-maxage")
	})
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.finish()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (int, error) {
	w.finish()
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets files be sent as fast as without us.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	w.finish()
	return io.Copy(w.ResponseWriter, r)
}

// Flush implements [http.Flusher].
func (w *writer) Flush() {
	w.finish()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // as Flusher has it, nobody learns
}

// Hijack implements [http.Hijacker]. Whoever writes our headers then, as
// reverse proxies do, sends the cookie; a command is found at the end. The
// connection ends when the session does, at the latest.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	func() {
		defer w.recover()
		w.keep(w.Header())
	}()
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || w.visit.session == nil {
		return conn, buffer, err //nolint:wrapcheck // it is that of the server
	}
	s := w.c.sockets.add(conn, w.visit)
	s.through(buffer)
	return s, buffer, nil
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
