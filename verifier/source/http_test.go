package source

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
)

// prefix is where the test servers publish a room.
const prefix = "/r/sale/"

// serve publishes files behind a handler that may respond itself.
func serve(t *testing.T, files roomtest.Files, before func(w http.ResponseWriter, r *http.Request) (done bool)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		b, err := files.Get(strings.TrimPrefix(r.URL.Path, prefix))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(s.Close)
	return s
}

// quick returns a source with short timeouts.
func quick(t *testing.T, s *httptest.Server) *httpSource {
	t.Helper()
	src, err := HTTP(s.URL+prefix, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	fast := src.(*httpSource)
	fast.pause = time.Millisecond
	return fast
}

func TestHTTP(t *testing.T) {
	var agents atomic.Int64
	s := serve(t, logOf(t, 2000), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.UserAgent(), "proofline-verify") && r.Method == http.MethodGet {
			agents.Add(1)
		}
		return false
	})
	for _, suffix := range []string{"", "/", "/checkpoint"} {
		src, err := Open(s.URL + "/r/sale" + suffix)
		if err != nil {
			t.Fatal(err)
		}
		wantVerified(t, src, 2000)
	}
	if n := agents.Load(); n != 3*9 {
		t.Errorf("%d requests with a user agent, want 27", n)
	}
}

func TestHTTPCompressed(t *testing.T) {
	files := logOf(t, 300)
	s := serve(t, files, func(w http.ResponseWriter, r *http.Request) bool {
		b, err := files.Get(strings.TrimPrefix(r.URL.Path, prefix))
		if err != nil || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return false
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(b)
		_ = z.Close()
		return true
	})
	wantVerified(t, quick(t, s), 300)
}

func TestHTTPFetchesInParallel(t *testing.T) {
	var now, most atomic.Int64
	s := serve(t, logOf(t, 256*40), func(_ http.ResponseWriter, _ *http.Request) bool {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		return false
	})
	wantVerified(t, quick(t, s), 256*40)
	if n := most.Load(); n < 8 || n > 64 {
		t.Errorf("%d requests at once", n)
	}
}

// Temporary errors are retried; the first two of three responses are such errors.
func TestHTTPRetries(t *testing.T) {
	files := logOf(t, 3)
	for name, answer := range map[string]func(w http.ResponseWriter){
		"unavailable":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"too many":          func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"gateway":           func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"connection closed": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"body cut short": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			s := serve(t, files, func(w http.ResponseWriter, _ *http.Request) bool {
				if n.Add(1)%3 == 0 {
					return false
				}
				answer(w)
				return true
			})
			wantVerified(t, quick(t, s), 3)
			if n.Load() != 6 {
				t.Errorf("%d requests, want 6", n.Load())
			}
		})
	}
}

func TestHTTPErrors(t *testing.T) {
	files := logOf(t, 3)
	for _, c := range []struct {
		name     string
		status   int
		want     error
		requests int64
	}{
		{"not found", http.StatusNotFound, fs.ErrNotExist, 1},
		{"gone", http.StatusGone, fs.ErrNotExist, 1},
		{"forbidden", http.StatusForbidden, ErrStatus, 1},
		{"not modified", http.StatusNotModified, ErrStatus, 1},
		{"accepted", http.StatusAccepted, ErrStatus, 1},
		{"broken", http.StatusInternalServerError, ErrStatus, attempts},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n atomic.Int64
			s := serve(t, files, func(w http.ResponseWriter, _ *http.Request) bool {
				n.Add(1)
				w.WriteHeader(c.status)
				return true
			})
			_, err := quick(t, s).Checkpoint(t.Context())
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), s.URL+"/r/sale/checkpoint") || n.Load() != c.requests {
				t.Errorf("error %v after %d requests, want %v after %d", err, n.Load(), c.want, c.requests)
			}
		})
	}
}

func TestHTTPWaitsAsAsked(t *testing.T) {
	var n atomic.Int64
	s := serve(t, logOf(t, 3), func(w http.ResponseWriter, _ *http.Request) bool {
		if n.Add(1) > 1 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	began := time.Now()
	if _, err := quick(t, s).Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("waited %v, want a second", waited)
	}
}

// A server may send endlessly, or only a byte now and then.
func TestHTTPBounds(t *testing.T) {
	endless := func(pause time.Duration, chunk string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, chunk); err != nil {
					break
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
			return true
		}
	}
	t.Run("large", func(t *testing.T) {
		src := quick(t, serve(t, nil, endless(0, strings.Repeat("x", 1<<16))))
		if _, err := src.Checkpoint(t.Context()); !errors.Is(err, ErrTooLarge) {
			t.Errorf("checkpoint: %v", err)
		}
		if _, err := src.Tile(t.Context(), audit.Tile{Level: -1, Width: 256}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("bundle: %v", err)
		}
		if _, err := src.Tile(t.Context(), audit.Tile{Level: 0, Width: 1}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("tile: %v", err)
		}
	})
	t.Run("slow", func(t *testing.T) {
		src := quick(t, serve(t, nil, endless(5*time.Millisecond, "x")))
		src.timeout = 50 * time.Millisecond
		began := time.Now()
		if _, err := src.Checkpoint(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
	t.Run("redirects", func(t *testing.T) {
		src := quick(t, serve(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path+"/more", http.StatusFound)
			return true
		}))
		if _, err := src.Checkpoint(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects") {
			t.Errorf("error %v", err)
		}
	})
}

func TestHTTPCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
		time.AfterFunc(10*time.Millisecond, cancel)
		return true
	})
	began := time.Now()
	if _, err := quick(t, s).Checkpoint(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > longest-time.Second {
		t.Errorf("took %v", took)
	}
}

func TestHTTPUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	src := quick(t, s)
	s.Close()
	_, err := src.Checkpoint(t.Context())
	if err == nil || !strings.Contains(err.Error(), s.URL) || strings.Count(err.Error(), s.URL) > 1 {
		t.Errorf("error %v, want one that names %s once", err, s.URL)
	}
}

func TestHTTPAddresses(t *testing.T) {
	for _, address := range []string{
		"http://", "https:///r/sale", "http://%zz", "http://example.com/r?x=1", "http://example.com/r#x",
		"http://user:secret@example.com/r", "ftp://example.com/r", "example.com/r", "http://[::1",
	} {
		_, err := HTTP(address, nil)
		if !errors.Is(err, ErrURL) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
	for address, want := range map[string]string{
		"http://example.com":                "http://example.com",
		"https://example.com/r/sale/":       "https://example.com/r/sale",
		"https://example.com/r/a%2Fb":       "https://example.com/r/a%2Fb",
		"http://[::1]:8080/r/s/checkpoint":  "http://[::1]:8080/r/s",
		"http://example.com/r/checkpoints":  "http://example.com/r/checkpoints",
		"http://example.com/r/mycheckpoint": "http://example.com/r/mycheckpoint",
	} {
		src, err := HTTP(address, nil)
		if err != nil || src.(*httpSource).base != want {
			t.Errorf("%s: %v, %v, want %s", address, src, err, want)
		}
	}
}

// A partial tile is requested first, then the full one.
func TestHTTPPartialTileFromFull(t *testing.T) {
	keys := newKeys(t, origin)
	entries := entriesOf(t, keys, 256)
	files := publish(t, keys, entries)
	files[CheckpointPath] = publish(t, keys, entries[:100])[CheckpointPath]
	var asked []string
	s := serve(t, files, func(_ http.ResponseWriter, r *http.Request) bool {
		asked = append(asked, r.URL.Path)
		return false
	})
	wantVerified(t, quick(t, s), 100)
	want := fmt.Sprint([]string{prefix + "checkpoint", prefix + "tile/entries/000.p/100", prefix + "tile/entries/000"})
	if fmt.Sprint(asked) != want {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}
