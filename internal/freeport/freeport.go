// Package freeport gives tests addresses for programs that cannot listen on port 0.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports below those that Linux assigns to connections and to port 0 (32768 and up), so that no
// other test's server is assigned one of these in between.
const (
	first = 15_000
	last  = 32_000
)

// Addr returns an address on this machine that nothing listens on.
func Addr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(last-first)))
		if l, err := net.Listen("tcp", addr); err == nil { //nolint:noctx // closed at once
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
