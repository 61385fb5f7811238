package relay

import (
	"context"
	"sync"
	"time"
)

const (
	// probeTime is the time limit for one probe of all relays.
	probeTime = 6 * time.Second
	// probeInterval is the time between probes by Run: monitoring shows a beacon that is away within ten seconds.
	probeInterval = 5 * time.Second
	// freshFor is how long [Monitor.Check] reuses a successful probe.
	freshFor = 10 * time.Second
)

// Monitor checks whether the relays of a client serve its chain. A probe fetches and verifies the
// latest round, so a relay that is out of date or serves another chain does not pass. It is safe
// for concurrent use.
type Monitor struct {
	Client *Client
	// OnChange is called after the first probe and whenever the result changes; err is nil if a relay
	// serves the chain. It may be nil.
	OnChange func(err error)

	probing sync.Mutex // one probe at a time

	mu  sync.Mutex // guards the fields below
	at  time.Time  // time of the latest probe; zero before the first
	err error      // result of the latest probe
}

// Run probes until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	for {
		_ = m.probe(ctx)
		if !sleep(ctx, about(probeInterval)) {
			return
		}
	}
}

// Check returns nil if a recent probe passed. Otherwise it probes the relays and returns why none
// serves the chain.
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
		return err // the caller gave up, which is not a failure of the relays
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

// latest fetches and verifies the round before the current one, because relays may publish the
// current one a moment late.
func (c *Client) latest(ctx context.Context) error {
	n := c.Chain.After(time.Now().UnixMilli())
	_, err := c.Round(ctx, max(n, 3)-2)
	return err
}
