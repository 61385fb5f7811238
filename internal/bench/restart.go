package main

import (
	"fmt"
	"net/http"
	"time"
)

// restarts measures the start of a server with a large room, whose database has been stopped, too.
// The files of the database are in the page cache.
func (b *bench) restarts(v version) (func(int) ([]reading, error), error) {
	n := newBatch()
	s, err := b.fleet.productWith(v, "restart", n, b.restart)
	if err != nil {
		return nil, err
	}
	return b.restarting(v, s, "restart", n, restartFirst, restartAll), nil
}

// restartsSigned is restarts of a room in which each visitor has shown an issuer's signature.
func (b *bench) restartsSigned(v version) (func(int) ([]reading, error), error) {
	r, err := b.fleet.signedRoom(v, "restart-signed")
	if err != nil {
		return nil, err
	}
	for r.joined < b.restart {
		if _, err := r.join(min(signedJoins, b.restart-r.joined)); err != nil {
			return nil, err
		}
	}
	return b.restarting(v, r.server, r.slug, r.visitors, restartWithFirst, restartWithAll), nil
}

// restarting returns the runs that restart a server with the room of that name, whose visitors are of a batch.
func (b *bench) restarting(v version, s *server, slug string, n batch,
	untilFirst, untilAll *goal) func(int) ([]reading, error) {
	return func(int) ([]reading, error) {
		if err := b.fleet.stop(s); err != nil {
			return nil, err
		}
		began := time.Now()
		var err error
		if s, err = b.fleet.product(v, slug); err != nil {
			return nil, err
		}
		if err := s.await("/r/" + slug + "/state"); err != nil {
			return nil, err
		}
		first := time.Since(began)
		for i := range 100 { // the last ticket included
			ticket := n.ticket(b.restart - 1 - i*(b.restart/100)).String()
			if err := s.await("/r/" + slug + "/tickets/" + ticket); err != nil {
				return nil, err
			}
		}
		return []reading{
			{goal: untilFirst, value: first.Seconds(), size: b.restart},
			{goal: untilAll, value: time.Since(began).Seconds(), size: b.restart},
		}, nil
	}
}

// await requests a resource until the answer is 200. A room may not be ready yet.
func (s *server) await(path string) error {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.url(path), http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusOK:
			return nil
		case resp.StatusCode != http.StatusServiceUnavailable || time.Since(began) > time.Minute:
			return fmt.Errorf("get %s: %s", path, resp.Status)
		}
	}
}
