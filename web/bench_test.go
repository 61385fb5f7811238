package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/limit"
)

// The benchmarks send requests over kept-alive loopback connections. Each has a counterpart: a bare Echo
// handler that sends the same bytes for the same requests.

func BenchmarkState(b *testing.B) {
	s := newSite(b)
	s.open("bench")
	b.Run("bare", func(b *testing.B) { getFrom(b, bareEcho(b, s.get("/r/bench/state").body), "/r/bench/state") })
	b.Run("web", func(b *testing.B) { getFrom(b, s.url, "/r/bench/state") })
}

func BenchmarkTicket(b *testing.B) {
	s := newSite(b)
	path := "/r/bench/tickets/" + s.open("bench").ticket
	b.Run("bare", func(b *testing.B) { getFrom(b, bareEcho(b, s.get(path).body), path) })
	b.Run("web", func(b *testing.B) { getFrom(b, s.url, path) })
}

func BenchmarkJoin(b *testing.B) {
	s := newSite(b)
	s.open("bench")
	for range 1000 { // so that receipts have a path
		s.post("/r/bench/join", "")
	}
	own := s.post("/r/bench/join", newVisitor("bench").joinBody()).want(http.StatusCreated).body
	joins := func() []byte {
		return fmt.Appendf(nil, "POST /r/bench/join HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\nContent-Length: 49\r\n\r\n%s",
			newVisitor("bench").joinBody())
	}
	b.Run("bare", func(b *testing.B) { ask(b, bareEcho(b, own), 400, joins) })
	b.Run("web", func(b *testing.B) { ask(b, s.url, 400, joins) })
	b.Run("limited", func(b *testing.B) {
		s.budgets.limits = limit.New(limit.Options{Joins: 1 << 23, Tickets: 1 << 23, Log: slog.New(slog.DiscardHandler)})
		ask(b, s.url, 400, joins)
	})
}

// bareEcho serves one body with Echo alone.
func bareEcho(b *testing.B, body string) string {
	e := echo.New()
	answer := []byte(body)
	e.Any("/*", func(c echo.Context) error { return c.Blob(http.StatusOK, "application/json", answer) })
	listener := httptest.NewServer(e)
	b.Cleanup(listener.Close)
	return listener.URL
}

func getFrom(b *testing.B, url, path string) {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: example.com\r\n\r\n")
	ask(b, url, 64, func() []byte { return request })
}

// ask sends b.N requests over a number of connections.
func ask(b *testing.B, url string, connections int, next func() []byte) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	failed := make(chan error, connections)
	busy := cpuTime(b)
	b.ResetTimer()
	for range connections {
		go func() { failed <- converse(strings.TrimPrefix(url, "http://"), &left, next) }()
	}
	for range connections {
		if err := <-failed; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64((cpuTime(b)-busy).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time used by this process, including the load generator. Unlike the elapsed time
// it does not depend on the load of the machine.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// converse sends requests until none are left.
func converse(address string, left *atomic.Int64, next func() []byte) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for left.Add(-1) >= 0 {
		if _, err := c.Write(next()); err != nil {
			return err
		}
		if err := skipAnswer(r); err != nil {
			return err
		}
	}
	return nil
}

// skipAnswer reads a successful response with as little work as possible.
func skipAnswer(r *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 20")) {
			return fmt.Errorf("answered %s", line)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	_, err := io.CopyN(io.Discard, r, int64(length))
	return err
}

// BenchmarkReport measures reports of 20 connectors, each with 17 started sessions, and optionally as
// many ended ones, which are sent to every connector.
func BenchmarkReport(b *testing.B) {
	for name, ends := range map[string]bool{"begin": false, "end": true} {
		b.Run(name, func(b *testing.B) { benchReport(b, ends) })
	}
}

func benchReport(b *testing.B, ends bool) {
	b.Helper()
	s := newTenants(b)
	s.create(`{"slug":"bench","session":"10m","outflow":{"per_minute":600000},"windows":[{"length":"24h"}]}`)
	text, _ := s.token(s.main, account.Connect, time.Hour)
	ids := func() string {
		list := make([]string, 17)
		for i := range list {
			list[i] = newID()
		}
		return `["` + strings.Join(list, `","`) + `"]`
	}
	nodes := make([]string, 20)
	for i := range nodes {
		nodes[i] = newID()
	}
	var sent atomic.Uint64
	ask(b, s.url, len(nodes), func() []byte {
		sessions := ids()
		news := `"started":` + sessions
		if ends {
			news += `,"ended":` + sessions
		}
		body := `{"node":"` + nodes[sent.Add(1)%uint64(len(nodes))] + `","kind":"proxy","version":"1","rooms":[{"room":"` + publicURL + `/r/bench","mode":"safety-net",` + news + `}]}`
		return fmt.Appendf(nil, "POST /v1/connectors/report HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", text, len(body), body)
	})
}
