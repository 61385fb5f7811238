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
	c           *Connector
	admitted    *admittedRequest
	isDone      bool
	isCookieSet bool // the session goes on
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
	v := w.admitted
	if v.session == nil {
		return
	}
	if slices.Contains(commands, "release") {
		w.c.release(v.room, v.session)
		h.Add("Set-Cookie", noCookie(v.room))
		return
	}
	w.keepSession(h)
}

// recover makes little of a fault of ours: the visitor gets the site's answer.
func (w *writer) recover() {
	if fault := recover(); fault != nil {
		w.c.logPanic("an answer", fault)
	}
}

// keep has the session begin or go on. It does so once.
func (w *writer) keepSession(h http.Header) {
	v := w.admitted
	if w.isCookieSet || v.session == nil {
		return
	}
	w.isCookieSet = true
	if v.isNew {
		w.startSession(h)
		return
	}
	if v.isDue && !isShared(h) && w.c.extend(v.room, v.session, w.c.options.Now()) {
		h.Add("Set-Cookie", w.c.cookieOf(v.room, v.session))
	}
}

// extend has a session go on from now, or for as long as its sockets have had it
// go on already. False: it was told just now, and others have the cookie.
func (c *Connector) extend(rm *room, v *session, now time.Time) bool {
	if c.touch(rm, v, now) {
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
func (w *writer) startSession(h http.Header) {
	if isShared(h) {
		w.admitted.room.state.gate.end(w.admitted.session)
		return
	}
	h.Add("Set-Cookie", w.c.cookieOf(w.admitted.room, w.admitted.session))
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
		w.keepSession(w.Header())
	}()
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || w.admitted.session == nil {
		return conn, buffer, err //nolint:wrapcheck // it is that of the server
	}
	s := w.c.sockets.add(conn, w.admitted)
	s.through(buffer)
	return s, buffer, nil
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
