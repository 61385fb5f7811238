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
	return func(int) ([]reading, error) {
		if err := b.fleet.stop(s); err != nil {
			return nil, err
		}
		began := time.Now()
		if s, err = b.fleet.product(v, "restart"); err != nil {
			return nil, err
		}
		if err := s.await("/r/restart/state"); err != nil {
			return nil, err
		}
		first := time.Since(began)
		for i := range 100 { // the last ticket included
			ticket := n.ticket(b.restart - 1 - i*(b.restart/100)).String()
			if err := s.await("/r/restart/tickets/" + ticket); err != nil {
				return nil, err
			}
		}
		return []reading{
			{goal: restartFirst, value: first.Seconds(), size: b.restart},
			{goal: restartAll, value: time.Since(began).Seconds(), size: b.restart},
		}, nil
	}, nil
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
