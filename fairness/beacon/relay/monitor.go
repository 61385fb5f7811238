package relay

import (
	"context"
	"sync"
	"time"
)

const (
	// probeTime bounds one probe of all relays.
	probeTime = 6 * time.Second
	// probeEvery is how often a monitor probes by itself.
	probeEvery = 30 * time.Second
	// freshFor is how long a good probe answers [Monitor.Check] without another one.
	freshFor = 10 * time.Second
)

// Monitor knows whether the relays of a client serve its chain at present. A
// probe gets the latest round and verifies it, so a relay that is there but out
// of date, or that serves another chain, does not pass. Safe for concurrent use.
type Monitor struct {
	Client *Client
	// OnChange is called when the relays are reached for the first time or no
	// longer (err is not nil), and when that changes. May be nil.
	OnChange func(err error)

	probing sync.Mutex // one probe at a time

	mu  sync.Mutex // guards all below
	at  time.Time  // of the latest probe; zero before the first
	err error      // of that
}

// Run probes until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	for {
		_ = m.probe(ctx)
		if !sleep(ctx, about(probeEvery)) {
			return
		}
	}
}

// Check probes the relays, unless a recent probe passed, and returns why no
// relay serves the chain, or nil.
func (m *Monitor) Check(ctx context.Context) error {
	m.mu.Lock()
	isFresh := m.err == nil && !m.at.IsZero() && time.Since(m.at) < freshFor
	m.mu.Unlock()
	if isFresh {
		return nil
	}
	return m.probe(ctx)
}

// Err returns why the latest probe failed; nil if it passed, or before the first.
func (m *Monitor) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *Monitor) probe(ctx context.Context) error {
	m.probing.Lock()
	defer m.probing.Unlock()
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := m.Client.latest(limited)
	if err != nil && ctx.Err() != nil {
		return err // the caller gave up, which says nothing about the relays
	}
	m.mu.Lock()
	hasChanged := m.at.IsZero() || (m.err == nil) != (err == nil)
	m.at, m.err = time.Now(), err
	m.mu.Unlock()
	if hasChanged && m.OnChange != nil {
		m.OnChange(err)
	}
	return err
}

// latest gets and verifies the round before the current one: relays may be a
// moment late with the current one.
func (c *Client) latest(ctx context.Context) error {
	n := c.Chain.After(time.Now().UnixMilli())
	_, err := c.Round(ctx, max(n, 3)-2)
	return err
}
