package session

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// Limits of clients that share a session.
const (
	MaxClients = 8
	clientTTL  = 10 * time.Minute
	maxShared  = 50_000 // number of sessions remembered
)

// holders counts the clients of each session at this node. A client is a network
// and a browser family; a phone that moves has several. The zero value is ready.
type holders struct {
	mu    sync.Mutex
	known map[[16]byte]*clientSet
}

// clientSet holds the recent clients of a session.
type clientSet struct {
	clients [MaxClients]uint64
	seen    [MaxClients]int64 // last use, in ms
	n       int
}

// clientID returns an identifier of a client.
func clientID(client netip.Addr, agent string) uint64 {
	network, family := NetworkOf(client), FamilyOf(agent)
	return binary.BigEndian.Uint64(network[:])*31 + binary.BigEndian.Uint64(family[:])
}

// add records that a client uses a session. It returns false if too many other clients do.
func (h *holders) add(pass [16]byte, client uint64, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	ms := now.UnixMilli()
	u := h.known[pass]
	if u == nil {
		if h.known == nil {
			h.known = map[[16]byte]*clientSet{}
		}
		if len(h.known) >= maxShared {
			h.shrink(ms)
		}
		u = new(clientSet)
		h.known[pass] = u
	}
	return u.add(client, ms)
}

func (u *clientSet) add(client uint64, ms int64) bool {
	oldest := 0
	for i := range u.n {
		if u.clients[i] == client {
			u.seen[i] = ms
			return true
		}
		if u.seen[i] < u.seen[oldest] {
			oldest = i
		}
	}
	switch {
	case u.n < MaxClients:
		oldest = u.n
		u.n++
	case ms-u.seen[oldest] < clientTTL.Milliseconds():
		return false
	}
	u.clients[oldest], u.seen[oldest] = client, ms
	return true
}

// shrink removes sessions that have not been used recently, or else about a tenth.
func (h *holders) shrink(ms int64) {
	for pass, u := range h.known {
		latest := int64(0)
		for i := range u.n {
			latest = max(latest, u.seen[i])
		}
		if ms-latest >= clientTTL.Milliseconds() {
			delete(h.known, pass)
		}
	}
	for pass := range h.known {
		if len(h.known) < maxShared*9/10 {
			return
		}
		delete(h.known, pass)
	}
}

// maxClients returns the largest number of recent clients of one session.
func (h *holders) maxClients(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	most, since := 0, now.Add(-clientTTL).UnixMilli()
	for _, u := range h.known {
		n := 0
		for i := range u.n {
			if u.seen[i] > since {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
