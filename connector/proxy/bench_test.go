package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"github.com/proofline/proofline/connector/conformance"
)

// BenchmarkVisitor measures a request with a session through the proxy, and through
// one of the standard library in front of the same site. internal/bench measures the
// same over the network.
func BenchmarkVisitor(b *testing.B) {
	page := bytes.Repeat([]byte("x"), 8<<10)
	site := start(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	room := conformance.NewRoom(b)
	p := New(Options{Connector: newConnector(b, room), To: to(b, site)})
	addr := start(b, p)
	cookie := room.Enter(b, addr)
	for name, h := range map[string]http.Handler{
		"proxy": p,
		"bare": &httputil.ReverseProxy{BufferPool: &buffers{}, Transport: p.site.transport, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.options.To[0])
			r.SetXForwarded()
		}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "/tickets/7?row=2", http.NoBody)
				r.Host = "shop.example.com"
				r.Header.Set("Cookie", "basket=7f3a; "+cookie)
				r.Header.Set("User-Agent", "Mozilla/5.0")
				r.Header.Set("Accept", "text/html")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if n, _ := io.Copy(io.Discard, w.Result().Body); n != int64(len(page)) {
					b.Fatalf("status %d, %d bytes", w.Code, n)
				}
			}
		})
	}
}
