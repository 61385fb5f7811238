// Package freeport gives tests addresses for programs that cannot listen on port 0.
package freeport

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Ports below those that Linux assigns to connections and to port 0 (32768 and up), so that no
// other test's server is assigned one of these in between.
const (
	first = 15_000
	last  = 32_000
)

// Addr returns an address on this machine that nothing listens on, and that no other test is given,
// of any process, until this test ends.
func Addr(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(first + rand.IntN(last-first))
		if addr := net.JoinHostPort("127.0.0.1", port); reserve(t, port) && isFree(addr) {
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// reserve locks a port's file until the test ends, and reports whether it could.
func reserve(t testing.TB, port string) bool {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "proofline-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, port), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a number
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func isFree(addr string) bool {
	l, err := net.Listen("tcp", addr) //nolint:noctx // closed at once
	if err != nil {
		return false
	}
	return l.Close() == nil
}
