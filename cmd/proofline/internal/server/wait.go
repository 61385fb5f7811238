package server

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/cmd/proofline/internal/https"
)

const (
	reachInterval = time.Second      // pause between attempts to reach the database
	reachTimeout  = 10 * time.Second // time limit of one attempt
	warnInterval  = 30 * time.Second // time between warnings
)

// awaitDatabase waits until the database answers, and logs that it waits. Meanwhile the server
// answers requests with 503, and /livez with 200. Errors that waiting cannot fix, such as a wrong
// password, are returned at once.
func (s *Server) awaitDatabase(ctx context.Context, url string) error {
	began, warned := time.Now(), time.Time{}
	stop := func() {}
	defer func() { stop() }()
	for {
		isAway, err := reach(ctx, url)
		waited := time.Since(began)
		if err == nil || !isAway || s.cfg.DatabaseWait > 0 && waited >= s.cfg.DatabaseWait {
			return err
		}
		if warned.IsZero() {
			stop = s.answerWaiting()
		}
		if time.Since(warned) >= warnInterval {
			warned = time.Now()
			s.cfg.Log.Warn("database does not answer: the server waits for it",
				"waited", waited.Round(time.Second), "err", err)
		}
		select {
		case <-time.After(reachInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func reach(ctx context.Context, url string) (isAway bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	isAway, err = pglog.Reach(bounded, url)
	return isAway || err != nil && bounded.Err() != nil && ctx.Err() == nil, err
}

// answerWaiting answers requests on both addresses with [waitingAnswer] until stop is called, which leaves the
// listeners open.
func (s *Server) answerWaiting() (stop func()) {
	public, metrics := waitOn(s.listener, s.cfg.HTTPS), waitOn(s.metrics, nil)
	return func() { public(); metrics() }
}

// waitOn answers requests on one address.
func waitOn(listener net.Listener, speaks *https.Server) (stop func()) {
	l, ok := listener.(*net.TCPListener)
	if !ok {
		return func() {}
	}
	waiting := &http.Server{Handler: http.HandlerFunc(waitingAnswer), ReadHeaderTimeout: reachTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = waiting.Serve(speaks.Wrap(lent{l})) // until stop
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if waiting.Shutdown(ctx) != nil {
			_ = waiting.Close()
		}
		<-done
		_ = l.SetDeadline(time.Time{})
	}
}

// lent is a listener whose Close leaves the underlying listener open for the next
// server.
type lent struct{ *net.TCPListener }

// Close makes Accept return.
func (l lent) Close() error { return l.SetDeadline(time.Now()) }

func waitingAnswer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Connection", "close")
	if r.URL.Path == "/livez" {
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	h.Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte("The server is waiting for its database.\n"))
}
