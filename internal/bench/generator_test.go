package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/rawhttp"
)

func TestParse(t *testing.T) {
	const answer = "HTTP/1.1 201 Created\r\nDate: x\r\nContent-Length: 3\r\n\r\nabc"
	for n := range answer {
		if _, _, whole, err := parse([]byte(answer[:n])); whole || err != nil {
			t.Errorf("first %d bytes: whole %v, %v", n, whole, err)
		}
	}
	status, body, whole, err := parse([]byte(answer))
	if status != 201 || string(body) != "abc" || !whole || err != nil {
		t.Errorf("%d %q %v %v", status, body, whole, err)
	}
	for _, bad := range []string{answer + "d", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"} {
		if _, _, _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestGenerator: every number is requested once, and a run with a rate keeps to it.
func TestGenerator(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs epoll")
	}
	const total = 500
	var seen [total]atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err == nil {
			seen[i].Add(1)
		}
		fmt.Fprint(w, r.URL.Path)
	}))
	defer server.Close()
	g := generator{ctx: t.Context(), addr: strings.TrimPrefix(server.URL, "http://"), conns: 7, rate: 2_500,
		total: total,
		request: func(dst []byte, i int) []byte {
			return rawhttp.AppendRequest(dst, "GET", "bench", fmt.Sprintf("/%d", i), "", "")
		},
		answered: func(i int, body []byte) {
			if want := fmt.Sprintf("/%d", i); string(body) != want {
				t.Errorf("answer to %s is %s", want, body)
			}
		}}
	f, err := g.run(200)
	if err != nil {
		t.Fatal(err)
	}
	if f.Count != total || f.took < 190*time.Millisecond {
		t.Errorf("%d answers in %v", f.Count, f.took)
	}
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Errorf("request %d arrived %d times", i, n)
		}
	}
	if _, err := g.run(201); err == nil || !strings.Contains(err.Error(), "want only 201") {
		t.Errorf("another status: %v", err)
	}
}
