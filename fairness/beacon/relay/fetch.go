package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/fairness/beacon"
)

const (
	// answerTime is the time limit for one relay. Some relays hold a request for the next round until
	// it appears.
	answerTime = 5 * time.Second
	// maxBody is the maximum size of an answer in bytes. Rounds and chains have a few hundred.
	maxBody = 64 << 10
)

// status is the error for an answer with a status other than 200.
type status int

func (s status) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s))))
}

// Is makes the statuses for a future round match [ErrNotYet].
func (s status) Is(target error) bool {
	return target == ErrNotYet && (s == http.StatusNotFound || s == http.StatusTooEarly)
}

func (c *Client) fetchRound(ctx context.Context, base string, n uint64) ([]byte, error) {
	body, err := c.get(ctx, base, fmt.Sprintf("/%x/public/%d", c.Chain.Hash(), n))
	if err != nil {
		return nil, err
	}
	got, signature, err := ParseRound(body)
	if err != nil {
		return nil, err
	}
	if got != n {
		return nil, fmt.Errorf("answers with round %d", got)
	}
	return signature, c.Chain.Verify(n, signature)
}

// fetchInfo asks for the chain by its hash. Relays of a single chain may not know that path, so it
// then asks for their only chain.
func (c *Client) fetchInfo(ctx context.Context, base string, hash [32]byte) (beacon.Chain, error) {
	body, err := c.get(ctx, base, fmt.Sprintf("/%x/info", hash))
	if code := status(0); errors.As(err, &code) && (code == http.StatusNotFound || code == http.StatusBadRequest) {
		body, err = c.get(ctx, base, "/info")
	}
	if err != nil {
		return beacon.Chain{}, err
	}
	chain, err := ParseInfo(body)
	if err == nil && chain.Hash() != hash {
		err = fmt.Errorf("%w: it serves %x", ErrChain, chain.Hash())
	}
	return chain, err
}

// get returns the body of an answer. Errors do not contain the address, which may have secrets.
func (c *Client) get(ctx context.Context, base, path string) ([]byte, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+path, nil)
	if err != nil {
		return nil, ErrRelay
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "proofline")
	body, err := c.body(request)
	if err != nil && caller.Err() == nil && ctx.Err() != nil {
		return nil, fmt.Errorf("no answer within %s", answerTime)
	}
	return body, err
}

func (c *Client) body(request *http.Request) ([]byte, error) {
	client := c.HTTP
	if client == nil {
		client = defaultHTTP()
	}
	response, err := client.Do(request)
	if address := (*url.Error)(nil); errors.As(err, &address) {
		return nil, address.Err
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // everything needed is read
	if response.StatusCode != http.StatusOK {
		return nil, status(response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("answers with more than %d bytes", maxBody)
	}
	return body, nil
}

// defaultHTTP is the HTTP client of clients without their own.
var defaultHTTP = sync.OnceValue(func() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           16,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxBody,
		},
		// Only the configured relays may answer, so no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
})
