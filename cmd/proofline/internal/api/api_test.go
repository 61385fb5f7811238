package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestProblem(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/invalid":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"title":"Invalid input","detail":"all in one","errors":[{"field":"slug","detail":"is bad"},{"field":"","detail":"is odd"}]}`)
		case "/early":
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"title":"Not open yet","detail":"in a minute"}`)
		case "/proxy":
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, `<html>nothing here</html>`)
		case "/token":
			fmt.Fprintf(w, "%q", r.Header.Get("Authorization"))
		default:
			fmt.Fprint(w, "hello")
		}
	}))
	defer s.Close()
	c := &Client{Base: s.URL, Token: "t"}
	for path, want := range map[string]struct {
		text  string
		retry time.Duration
	}{
		"/invalid": {"the server answered 400 Invalid input\n  slug: is bad\n  body: is odd", 0},
		"/early":   {"the server answered 409 Not open yet: in a minute", 90 * time.Second},
		"/proxy":   {"the server answered 502 Bad Gateway", 0},
	} {
		_, err := c.Call(t.Context(), http.MethodGet, path, nil, nil)
		p := (*Problem)(nil)
		if !errors.As(err, &p) || p.Error() != want.text || p.RetryAfter != want.retry {
			t.Errorf("%s: %v, want %+v", path, err, want)
		}
	}
	var token string
	if status, err := c.Call(t.Context(), http.MethodGet, "/token", nil, &token); err != nil || status != 200 ||
		token != "Bearer t" {
		t.Errorf("token: %d %q, %v", status, token, err)
	}
	if _, err := c.Call(t.Context(), http.MethodGet, "/", nil, &token); !errors.Is(err, ErrAnswer) {
		t.Errorf("not JSON: %v, want ErrAnswer", err)
	}
	s.Close()
	if _, err := c.Call(t.Context(), http.MethodGet, "/", nil, &token); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no server: %v, want ErrUnreachable", err)
	}
}
