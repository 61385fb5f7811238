package server

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/proofline/proofline/audit/pglog"
)

// How often a database that does not answer at the start is tried, and how often
// the log says so.
const (
	reachEvery   = time.Second
	reachTimeout = 10 * time.Second
	sayEvery     = 30 * time.Second
)

// awaitDatabase waits until the database answers, and says so. Meanwhile requests
// are answered with 503, and /livez with 200. What waiting does not mend, such as a
// wrong password, is an error at once.
func (s *Server) awaitDatabase(ctx context.Context, url string) error {
	began, said := time.Now(), time.Time{}
	stop := func() {}
	defer func() { stop() }()
	for {
		isAway, err := reach(ctx, url)
		waited := time.Since(began)
		if err == nil || !isAway || s.cfg.DatabaseWait > 0 && waited >= s.cfg.DatabaseWait {
			return err
		}
		if said.IsZero() {
			stop = s.answerWaiting()
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			s.cfg.Log.Warn("database does not answer: the server waits for it", "waited", waited.Round(time.Second), "err", err)
		}
		select {
		case <-time.After(reachEvery):
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

// answerWaiting answers requests until stop, and leaves the listener open.
func (s *Server) answerWaiting() (stop func()) {
	l, ok := s.listener.(*net.TCPListener)
	if !ok {
		return func() {}
	}
	waiting := &http.Server{Handler: http.HandlerFunc(waitingAnswer), ReadHeaderTimeout: reachTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = waiting.Serve(lent{l}) // it ends when stopped
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

// lent is a listener that others go on with when it is closed here.
type lent struct{ *net.TCPListener }

// Close ends Accept.
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
	_, _ = w.Write([]byte("The server waits for its database.\n"))
}
