package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/proofline/proofline/room/meter"
)

const (
	scrapeInterval = 5 * time.Second // between scrapes, as docs/operate/METRICS.md asks for
	scrapes        = 40              // of a run
	recordings     = 1_000_000       // of a run
)

// metrics measures scrapes of a server with many rooms, and the share of a join's CPU time that records what they show.
// Each join is taken to be an append of its own, which costs most.
func (b *bench) metrics(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.product(v, "metrics", "--metrics-addr", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	url, err := s.metricsURL()
	if err != nil {
		return nil, err
	}
	if err := s.createMany(); err != nil {
		return nil, err
	}
	if err := s.fill(numbered(0), newBatch(), warmUp); err != nil {
		return nil, err
	}
	own := &server{ctx: s.ctx, addr: strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")}
	bare, err := b.fleet.bareOf(http.MethodGet, own, "/metrics", "")
	if err != nil {
		return nil, err
	}
	return func(int) ([]reading, error) {
		joins, err := s.load(generator{conns: 256, until: b.length, request: joining(numbered(0))}, 201)
		if err != nil {
			return nil, err
		}
		echo, err := bare.scraped(bare.url("/metrics"))
		if err != nil {
			return nil, err
		}
		took, scraping, err := s.cpuOfScrapes(url)
		if err != nil {
			return nil, err
		}
		recording, err := recorded()
		if err != nil {
			return nil, err
		}
		return []reading{
			{goal: scrapeTime, value: milliseconds(took)},
			{goal: scrapeEcho, value: milliseconds(echo)},
			{goal: scrapesJoin, value: scraping / joins.cost.server / scrapeInterval.Seconds()},
			{goal: recordJoin, value: 100 * recording / joins.cost.server, cost: joins.cost},
		}, nil
	}, nil
}

// cpuOfScrapes returns how long a scrape takes, and the CPU time in microseconds that it adds to what the server does
// at rest.
func (s *server) cpuOfScrapes(url string) (took time.Duration, cpu float64, err error) {
	began := time.Now()
	first, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	if took, err = s.scraped(url); err != nil {
		return 0, 0, err
	}
	scraped, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(time.Since(began))
	rested, err := s.cpu()
	return took, float64((scraped - first - (rested - scraped)).Microseconds()) / scrapes, err
}

// scraped scrapes a server many times, and returns the median of the durations.
func (s *server) scraped(url string) (time.Duration, error) {
	var all []time.Duration
	for range scrapes {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		answer, err := http.DefaultClient.Do(req) // accepts gzip, as Prometheus does
		if err != nil {
			return 0, err
		}
		n, err := io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || n == 0 {
			return 0, fmt.Errorf("scrape %s: %s, %d bytes, %w", url, answer.Status, n, err)
		}
		all = append(all, time.Since(began))
	}
	return median(all), nil
}

// recorded returns the CPU time in microseconds that recording an append takes.
func recorded() (float64, error) {
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	m := meter.New()
	for range recordings {
		m.Appended(meter.Append{Entries: 1, Took: time.Millisecond})
	}
	after, err := ownCPU()
	return float64((after - before).Microseconds()) / recordings, err
}
