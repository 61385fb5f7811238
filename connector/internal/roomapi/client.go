// Package roomapi sends the requests of a connector to the servers of its rooms.
package roomapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/proofline/proofline/connector/internal/background"
)

// Timeout is the time limit of a request.
const Timeout = 3 * time.Second

// maxResponse is the maximum number of bytes read from a response.
const maxResponse = 1 << 20

// ClientHeader is the header with the pseudonym of a pass holder.
const ClientHeader = "Proofline-Client"

// ErrUnreachable is returned when a server does not answer, or answers with a server
// error (5xx).
var ErrUnreachable = errors.New("room cannot be reached")

// Client sends requests. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	group *background.Group
}

// NewClient returns a client. Panics of the HTTP client are recovered in the group.
func NewClient(c *http.Client, group *background.Group) *Client { return &Client{c, group} }

// Request is a request to a server.
type Request struct {
	Method string
	URL    string
	Token  string // empty: none
	Client string // [ClientHeader]; empty: none
	JSON   []byte // empty: no body
	// IsVisitorShaped: a visitor influences the request, and could make it fail.
	IsVisitorShaped bool
}

// Do sends a request and reads the response. It finishes even if ctx ends. Error:
// [ErrUnreachable].
func (c *Client) Do(ctx context.Context, req Request) (status int, body []byte, err error) {
	if !c.group.Run("a request to "+req.URL, func() { status, body, err = c.roundTrip(ctx, req) }) {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.URL, ErrUnreachable, background.ErrPanic)
	}
	return status, body, err
}

func (c *Client) roundTrip(ctx context.Context, req Request) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, req.Method, req.URL, bytes.NewReader(req.JSON))
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.URL, ErrUnreachable, err)
	}
	if req.Token != "" {
		r.Header.Set("Authorization", "Bearer "+req.Token)
	}
	if req.Client != "" {
		r.Header.Set(ClientHeader, req.Client)
	}
	if len(req.JSON) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.URL, ErrUnreachable, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		return 0, nil, fmt.Errorf("ask %s: %w: status %d", req.URL, ErrUnreachable, answer.StatusCode)
	}
	return answer.StatusCode, body, nil
}
