package roomapi

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/reach"
)

// keysInterval is the time between key fetches because of unknown key ids.
const keysInterval = 10 * time.Second

// Server is the server of one room. It is safe for concurrent use.
type Server struct {
	url, origin string
	options     Options
	reach       *reach.Reach

	keys atomic.Pointer[map[string]ed25519.PublicKey] // keys by id; nil: never fetched

	fetching  sync.Mutex // held while the keys are fetched because of an unknown key id
	fetchedAt time.Time  // last such fetch; guarded by fetching
}

// Options holds what all servers of a connector share.
type Options struct {
	Client *Client
	Now    func() time.Time
	// ProbeNow is signaled when a visitor's request has failed, and the room should be
	// probed without a visitor.
	ProbeNow chan struct{}
}

// NewServer returns the server of the room with a URL and the origin of its passes.
func NewServer(url, origin string, r *reach.Reach, o Options) *Server {
	return &Server{url: url, origin: origin, options: o, reach: r}
}

// URL returns the room's URL.
func (s *Server) URL() string { return s.url }

// Origin returns the origin of the room's passes.
func (s *Server) Origin() string { return s.origin }

// HasKeys reports whether the room's keys were fetched.
func (s *Server) HasKeys() bool { return s.keys.Load() != nil }

// call sends a request to the room, and records whether it answered. Error: [ErrUnreachable].
func (s *Server) call(ctx context.Context, req Request) (status int, body []byte, err error) {
	status, body, err = s.options.Client.Do(ctx, req)
	now := s.options.Now()
	switch {
	case !errors.Is(err, ErrUnreachable):
		s.reach.Answered(now)
	case req.IsVisitorShaped:
		s.reach.FailedVisitor(now, err)
		background.Notify(s.options.ProbeNow)
	default:
		s.reach.Failed(now, err)
	}
	return status, body, err
}

// Probe fetches the room's keys. Errors: [ErrUnreachable], [ErrPass] for a room
// without usable keys.
func (s *Server) Probe(ctx context.Context) error { return s.fetchKeys(ctx) }

// key returns a key of the room. An unknown id may belong to a new key, so the keys are fetched, at
// most once per keysInterval.
func (s *Server) key(ctx context.Context, id string) (ed25519.PublicKey, error) {
	if k, ok := s.knownKey(id); ok {
		return k, nil
	}
	s.fetching.Lock()
	defer s.fetching.Unlock()
	if k, ok := s.knownKey(id); ok {
		return k, nil
	}
	if now := s.options.Now(); now.Sub(s.fetchedAt) >= keysInterval {
		s.fetchedAt = now
		if err := s.fetchKeys(ctx); err != nil {
			return nil, err
		}
	}
	if k, ok := s.knownKey(id); ok {
		return k, nil
	}
	if s.keys.Load() == nil {
		return nil, ErrUnreachable
	}
	return nil, ErrPass
}

func (s *Server) knownKey(id string) (ed25519.PublicKey, bool) {
	if keys := s.keys.Load(); keys != nil {
		k, ok := (*keys)[id]
		return k, ok
	}
	return nil, false
}

// fetchKeys fetches the room's keys.
func (s *Server) fetchKeys(ctx context.Context) error {
	var found struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := s.getJSON(ctx, s.url+"/.well-known/openid-configuration", &found); err != nil {
		return err
	}
	if found.Issuer != s.url || !strings.HasPrefix(found.Keys, s.url+"/") {
		return fmt.Errorf("keys of %s: the room names itself %q: %w", s.url, found.Issuer, ErrPass)
	}
	var set keySet
	if err := s.getJSON(ctx, found.Keys, &set); err != nil {
		return err
	}
	if keys := set.usable(); len(keys) > 0 {
		s.keys.Store(&keys)
	}
	return nil
}

// getJSON fetches a JSON document from the room. Errors: [ErrUnreachable]; [ErrPass]
// when there is no such document.
func (s *Server) getJSON(ctx context.Context, url string, into any) error {
	status, body, err := s.call(ctx, Request{Method: http.MethodGet, URL: url})
	if err != nil {
		return err
	}
	if status != http.StatusOK || json.Unmarshal(body, into) != nil {
		return fmt.Errorf("read %s: status %d: %w", url, status, ErrPass)
	}
	return nil
}

// ErrBatch is returned when a room refuses session updates, or its response does not
// match them.
var ErrBatch = errors.New("malformed response")

// Batch is the body of a batch request, which contains passes, and of the response, which has one
// word for each of them.
type Batch struct {
	Touch   []string `json:"touch"`
	Release []string `json:"release"`
}

// Update sends session updates. Errors: [ErrUnreachable] if they should be sent again,
// [ErrBatch].
func (s *Server) Update(ctx context.Context, b Batch) (said Batch, err error) {
	body, err := json.Marshal(b)
	if err != nil {
		return Batch{}, ErrBatch
	}
	status, text, err := s.call(ctx, Request{
		Method: http.MethodPost, URL: s.url + "/sessions/batch", JSON: body, IsVisitorShaped: true,
	})
	if err != nil {
		return Batch{}, err
	}
	switch status {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return Batch{}, ErrUnreachable // to be sent again with the next batch
	default:
		return Batch{}, fmt.Errorf("send session updates: status %d: %w", status, ErrBatch)
	}
	if json.Unmarshal(text, &said) != nil || len(said.Touch) != len(b.Touch) || len(said.Release) != len(b.Release) {
		return Batch{}, ErrBatch
	}
	return said, nil
}
