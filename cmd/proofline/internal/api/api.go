// Package api is a client for a Proofline server's HTTP APIs: the management API, which needs a
// token, and the visitors' API.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/internal/wire"
)

var (
	// ErrUnreachable is returned when the server does not answer.
	ErrUnreachable = errors.New("the server cannot be reached")
	// ErrAnswer is returned for an answer that no Proofline server would give.
	ErrAnswer = errors.New("not an answer from a Proofline server")
)

const (
	timeout   = 30 * time.Second
	maxAnswer = 16 << 20 // maximum size of an answer, in bytes
)

// Client sends requests to one server. Safe for concurrent use.
type Client struct {
	// Base is the URL that paths are appended to, without a trailing slash.
	Base string
	// Token is the management token; empty: no Authorization header.
	Token string
	// Header is sent with every request, in addition to the usual fields.
	Header http.Header
	// HTTP sends the requests; nil: a client with a timeout.
	HTTP *http.Client
}

// Answer is the server's response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is an error document of the server.
type Problem struct {
	wire.Problem

	RetryAfter time.Duration // 0: the answer has no Retry-After
}

// Error returns the problem on one line, and each field's error on a line below.
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" && len(p.Errors) == 0 {
		text += ": " + p.Detail
	}
	text = fmt.Sprintf("the server answered %d %s", p.Status, text)
	for _, e := range p.Errors {
		field := e.Field
		if field == "" {
			field = "body"
		}
		text += fmt.Sprintf("\n  %s: %s", field, e.Detail)
	}
	return text
}

// Do sends a request and returns the answer with any status. The body is JSON or
// empty. Errors: [ErrUnreachable] and that of ctx.
func (c *Client) Do(ctx context.Context, method, path string, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	maps.Copy(req.Header, c.Header)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: timeout}
	}
	resp, err := client.Do(req)
	if err != nil && ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return a, nil
}

// Call sends a request, decodes the answer into result and returns its status. For
// status 400 and above the error is a [*Problem].
func (c *Client) Call(ctx context.Context, method, path string, body []byte, result any) (int, error) {
	a, err := c.Do(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	if a.Status >= http.StatusBadRequest {
		return a.Status, a.Problem()
	}
	if a.Status == http.StatusNoContent && result == nil {
		return a.Status, nil
	}
	if err := json.Unmarshal(a.Body, result); err != nil {
		return a.Status, fmt.Errorf("%w: %s %s: %w", ErrAnswer, method, path, err)
	}
	return a.Status, nil
}

// Problem parses the answer as an error document. Any other document, such as a proxy's error page,
// yields a problem with the status alone.
func (a Answer) Problem() *Problem {
	p := &Problem{}
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") ||
		json.Unmarshal(a.Body, &p.Problem) != nil {
		p = &Problem{Problem: wire.Problem{Title: http.StatusText(a.Status)}}
	}
	p.Status = a.Status
	if seconds, err := strconv.ParseUint(a.Header.Get("Retry-After"), 10, 31); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}
