package connector

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
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
	if now := w.c.options.Now(); v.isDue && !isShared(h) && w.c.touch(v.door, v.session, now) {
		v.session.slide(now)
		h.Add("Set-Cookie", w.c.cookieOf(v.door, v.session))
	}
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
// reverse proxies do, sends the cookie; a command is found at the end.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	func() {
		defer w.recover()
		w.keep(w.Header())
	}()
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
