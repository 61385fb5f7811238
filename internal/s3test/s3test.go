// Package s3test starts servers of object storage that speak the S3 protocol, for tests.
package s3test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Server is a server with one bucket.
type Server struct {
	// Away makes the server respond to every request with 503.
	Away atomic.Bool
	// Forgets makes the server ignore conditions of writes, as some products do.
	Forgets atomic.Bool

	t       testing.TB
	url     string
	backend *s3mem.Backend
}

// Bucket is the name of a server's bucket.
const Bucket = "marks"

// Start starts a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, backend: s3mem.New()}
	if err := s.backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	objects := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		if s.Forgets.Load() {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
		}
		objects.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// Env returns the variables that lead clients to the server.
func (s *Server) Env() []string {
	return []string{"AWS_ENDPOINT_URL=" + s.url, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"}
}

// Objects returns the names of all objects with a prefix, and what they contain.
func (s *Server) Objects(prefix string) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	list, err := s.backend.ListBucket(Bucket, &gofakes3.Prefix{HasPrefix: prefix != "", Prefix: prefix},
		gofakes3.ListBucketPage{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range list.Contents {
		found, err := s.backend.GetObject(Bucket, o.Key, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(found.Contents)
		if err := errors.Join(err, found.Contents.Close()); err != nil {
			s.t.Fatal(err)
		}
		all[o.Key] = string(text)
	}
	return all
}

// Put writes an object.
func (s *Server) Put(name, content string) {
	s.t.Helper()
	written := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
	_, err := s.backend.PutObject(Bucket, name, written, strings.NewReader(content), int64(len(content)), nil)
	if err != nil {
		s.t.Fatal(err)
	}
}
