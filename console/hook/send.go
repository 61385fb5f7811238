package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/proofline/proofline/console/hook/pghook"
)

const (
	attemptTimeout = 10 * time.Second
	// lease is for how long a delivery is a node's: longer than an attempt takes.
	lease = time.Minute

	perEndpoint = 4  // deliveries under way to one endpoint, on all nodes
	atOnce      = 32 // deliveries under way on this node
	atOnceBad   = 16 // of these, to endpoints whose latest attempt failed

	readMost  = 4 << 10 // bytes of an answer
	keepMost  = 512     // characters of it in the log
	userAgent = "proofline (+https://github.com/proofline/proofline)"

	// An endpoint is disabled when nothing has succeeded for so long, in so many
	// attempts: one that is seldom used is not judged by two.
	failingTime = 3 * 24 * time.Hour
	failingMost = 10
)

// retries are how long after a failure the next attempt comes. After the last
// one the delivery is given up.
var retries = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
	time.Hour, 3 * time.Hour, 8 * time.Hour, 24 * time.Hour,
}

// client makes the client for one scheme.
func (h *Hooks) client(isPlain bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: h.guard.dialer(isPlain), TLSClientConfig: h.TLS, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: attemptTimeout, ResponseHeaderTimeout: attemptTimeout, MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns: 2 * atOnce, MaxIdleConnsPerHost: perEndpoint, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// slots count what is under way on this node.
type slots struct {
	mu             sync.Mutex // guards all below
	healthy, wrong int
}

// free returns how many more may be under way.
func (s *slots) free() (healthy, wrong int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return atOnce - s.healthy - s.wrong, min(atOnceBad-s.wrong, atOnce-s.healthy-s.wrong)
}

func (s *slots) add(isRetry bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isRetry {
		s.wrong += n
	} else {
		s.healthy += n
	}
}

// dispatch takes what is due and sends it.
func (h *Hooks) dispatch(ctx context.Context) error {
	healthy, wrong := h.slots.free()
	if healthy <= 0 {
		return nil // whatever ends next wakes
	}
	// What is taken while the server stops is given back, not lost until its
	// lease ends.
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	now := h.Now()
	taken, err := h.Store.Take(store, pghook.Limits{Now: now, Until: now.Add(lease), Lane: perEndpoint, Healthy: healthy, Failing: max(wrong, 0)})
	if err != nil {
		return err
	}
	for i := range taken {
		t := &taken[i]
		h.slots.add(t.Failing, 1)
		h.sending.Go(func() {
			defer h.signal()
			defer h.slots.add(t.Failing, -1)
			h.send(ctx, t)
		})
	}
	return nil
}

// send makes one attempt and stores what became of it.
func (h *Hooks) send(ctx context.Context, t *pghook.Taken) {
	began := h.Now()
	r := h.attempt(ctx, t)
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	if ctx.Err() != nil && r.failure != "" { // the server stops, and another one goes on
		h.logError("delivery cannot be given back", t, h.Store.Release(store, t.Delivery))
		return
	}
	a := pghook.Attempt{Number: t.Attempts, At: began, Took: h.Now().Sub(began), Status: r.status, Error: r.failure, Response: r.response}
	health, err := h.Store.Finish(store, t.Delivery, a, h.next(t, r))
	if err != nil { // it is due again when the lease ends
		h.logError("delivery cannot be noted", t, err)
		return
	}
	switch {
	case r.isGone:
		err = h.disable(store, t.Org, t.Target, DisabledGone)
	case health.Failures >= failingMost && h.Now().Sub(health.Since) >= failingTime:
		err = h.disable(store, t.Org, t.Target, DisabledFailing)
	}
	h.logError("endpoint cannot be disabled", t, err)
}

func (h *Hooks) logError(what string, t *pghook.Taken, err error) {
	if err != nil {
		h.Log.Error(what, "delivery", t.ID, "err", err)
	}
}

// next returns when the next attempt comes; nil for never.
func (h *Hooks) next(t *pghook.Taken, r result) *time.Time {
	if r.failure == "" || r.isFinal || t.Tries > len(retries) || t.Tries < 1 {
		return nil
	}
	wait := retries[t.Tries-1]
	due := h.Now().Add(time.Duration(float64(wait) * (0.9 + 0.2*h.Jitter())))
	return &due
}

// result is what became of an attempt.
type result struct {
	status   int
	failure  string // "" for success
	response string
	isGone   bool // the endpoint wants nothing any more
	isFinal  bool // to try again is of no use
}

// attempt sends a delivery once.
func (h *Hooks) attempt(ctx context.Context, t *pghook.Taken) result {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if t.Target == pghook.Mail {
		return h.mail(ctx, &t.Delivery)
	}
	r, err := h.post(ctx, t)
	if err != nil {
		r.failure = words(ctx, err)
	}
	return r
}

// post sends a delivery to its endpoint.
func (h *Hooks) post(ctx context.Context, t *pghook.Taken) (r result, err error) {
	id, now := "msg_"+t.ID.String(), h.Now()
	signature, err := h.sign(t, id, now)
	if err != nil {
		return r, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Recipient, strings.NewReader(t.Payload))
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	client := h.clients[req.URL.Scheme]
	if client == nil {
		return r, ErrAddress
	}
	resp, err := client.Do(req) //nolint:gosec // the dialer checks where it leads
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	body, _ := io.ReadAll(io.LimitReader(resp.Body, readMost))
	r = result{status: resp.StatusCode, response: printable(string(body)), isGone: resp.StatusCode == http.StatusGone}
	r.isFinal = r.isGone
	if resp.StatusCode/100 != 2 {
		r.failure = "answered " + strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	}
	return r, nil
}

// words says why an attempt failed. What the network here looks like is not
// told: no address that a name resolved to.
func words(ctx context.Context, err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded), isTimeout(err):
		return "no answer within 10 seconds"
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.As(err, &certificate):
		return "the certificate of the host is not trusted"
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return "no connection, or it broke"
	}
	return err.Error()
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// printable returns the beginning of a text for the log.
func printable(s string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	if runes := []rune(clean); len(runes) > keepMost {
		clean = string(runes[:keepMost])
	}
	return strings.TrimSpace(clean)
}
