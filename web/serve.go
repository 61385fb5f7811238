package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/internal/conns"
)

// Serve answers requests on l until ctx ends, and closes l. Before it returns nil, it asks clients
// to reconnect elsewhere, and answers open requests; requests that wait for an unreachable database
// get 503. An error means that some took longer than 8 s. The rooms must still be running; the
// caller closes them.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var open atomic.Int64
	share := conns.New(func(a netip.Addr) bool { return s.clients.IsTrusted(a) || s.budgets.limits.IsExempt(a) }, s.log)
	server := &http.Server{
		Handler:        s,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return requests },
		ConnState:      counts(&open, share),
	}
	server.RegisterOnShutdown(sync.OnceFunc(func() { close(s.closing) }))
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { drained <- s.drain(context.WithoutCancel(ctx), server, &open, abandon) })
	l = conns.LazyDeadlines(l)
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve HTTP: %w", err)
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("finish requests: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// counts returns a hook that counts open connections, in total and per network.
func counts(open *atomic.Int64, share *conns.Share) func(net.Conn, http.ConnState) {
	return func(conn net.Conn, state http.ConnState) {
		share.Watch(conn, state)
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

const drainPoll = 20 * time.Millisecond

// drain answers the open requests. Idle connections are closed with an answer to their next request
// if possible, because closing one silently may lose a request in flight.
func (s *Server) drain(ctx context.Context, server *http.Server, open *atomic.Int64, abandon func()) error {
	s.draining.Store(true)
	ended := make(chan struct{})
	defer close(ended)
	go s.refuseWaiting(ended, abandon)
	for end := time.Now().Add(lastWords); open.Load() > 0 && time.Now().Before(end); {
		time.Sleep(drainPoll)
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	return server.Shutdown(ctx)
}

// refuseWaiting ends requests that wait for a database that does not answer, while there is time to
// send an error.
func (s *Server) refuseWaiting(ended <-chan struct{}, abandon func()) {
	if s.rooms == nil {
		return
	}
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for s.rooms.Answers() {
		select {
		case <-ticker.C:
		case <-ended:
			return
		}
	}
	s.rooms.Abandon()
	abandon()
}
