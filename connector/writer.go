package connector

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// writer processes the headers of the site's response before they are sent.
type writer struct {
	http.ResponseWriter
	c           *Connector
	admitted    *admittedRequest
	isDone      bool
	isCookieSet bool // keepSession has run
}

// finish obeys the site's command, or else keeps the session. Only the first call has an effect.
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
		w.c.sessions.release(v.room, v.session)
		h.Add("Set-Cookie", v.room.NoCookie())
		return
	}
	w.keepSession(h)
}

// recover handles a panic of the connector; the visitor gets the site's response.
func (w *writer) recover() {
	if fault := recover(); fault != nil {
		w.c.group.LogPanic("an answer", fault)
	}
}

// keepSession starts or extends the session. Only the first call has an effect.
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
	if v.isDue && !isShared(h) && w.c.sessions.extend(v.room, v.session) {
		h.Add("Set-Cookie", w.c.sessions.store.Cookie(v.room.Room, v.session))
	}
}

// startSession sets the cookie of a new session. If caches may share the response,
// the session ends instead.
func (w *writer) startSession(h http.Header) {
	if isShared(h) {
		w.admitted.room.state.gate.End(w.admitted.session)
		return
	}
	h.Add("Set-Cookie", w.c.sessions.store.Cookie(w.admitted.room.Room, w.admitted.session))
}

// isShared reports whether caches may give the response to other clients, which must not get the
// cookie.
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

// ReadFrom implements [io.ReaderFrom], so that files are sent without extra copies.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	w.finish()
	return io.Copy(w.ResponseWriter, r)
}

// Flush implements [http.Flusher].
func (w *writer) Flush() {
	w.finish()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // Flusher returns no error
}

// Hijack implements [http.Hijacker]. A caller that then writes our headers, as
// reverse proxies do, sends the cookie; commands are obeyed at the end. The
// connection ends with the session.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	func() {
		defer w.recover()
		w.keepSession(w.Header())
	}()
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil || w.admitted.session == nil {
		return conn, buffer, err //nolint:wrapcheck // the server's error
	}
	s := w.c.sessions.sockets.add(conn, w.admitted)
	s.through(buffer)
	return s, buffer, nil
}

// Unwrap gives [http.ResponseController] access to the original writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
