package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/internal/traces"
)

const (
	attemptTimeout = 10 * time.Second
	// lease is how long a delivery is reserved for a node. It is longer than an attempt.
	lease = time.Minute

	perEndpoint       = 4  // concurrent deliveries to one endpoint, on all nodes
	maxSending        = 32 // concurrent deliveries on this node
	maxSendingFailing = 16 // of these, deliveries to endpoints whose latest attempt failed

	maxRead = 4 << 10 // bytes read of a response
	maxKept = 512     // characters of a response kept in the log
)

// sender sends deliveries that are due.
type sender struct {
	store     *pgwebhook.Outbox
	outbox    *outbox
	endpoints *Endpoints
	signer    *signer
	retry     retry
	smtp      *SMTP  // nil: the server cannot send mail
	publicURL string // public URL of the server
	client    *outbound.Client
	slots     slots
	tracer    *traces.Tracer
	sending   sync.WaitGroup
	now       func() time.Time
	log       *slog.Logger
}

// close waits for the attempts in progress.
func (s *sender) close() {
	s.sending.Wait()
	s.client.Close()
}

// newClient returns the client for endpoints; config is nil for the default.
func newClient(g outbound.Guard, config *tls.Config) *outbound.Client {
	return g.Client(outbound.Options{
		Timeout: attemptTimeout, TLS: config, Idle: 2 * maxSending, IdleAHost: perEndpoint,
	})
}

// slots counts the deliveries in progress on this node.
type slots struct {
	mu             sync.Mutex // guards the fields below
	healthy, wrong int
}

// free returns how many more deliveries may start.
func (s *slots) free() (healthy, wrong int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maxSending - s.healthy - s.wrong, min(maxSendingFailing-s.wrong, maxSending-s.healthy-s.wrong)
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

// dispatch takes due deliveries and sends them.
func (s *sender) dispatch(ctx context.Context) error {
	healthy, wrong := s.slots.free()
	if healthy <= 0 {
		return nil // the next delivery that finishes wakes the dispatcher
	}
	// During shutdown, deliveries already taken are released, not left until their lease ends.
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	now := s.now()
	taken, err := s.store.Take(store, pgwebhook.Limits{Now: now, Until: now.Add(lease), Lane: perEndpoint,
		Healthy: healthy, Failing: max(wrong, 0)})
	if err != nil {
		return err
	}
	for i := range taken {
		t := &taken[i]
		s.slots.add(t.Failing, 1)
		s.sending.Go(func() {
			defer s.outbox.signal()
			defer s.slots.add(t.Failing, -1)
			s.send(ctx, t)
		})
	}
	return nil
}

// send makes one attempt and stores the result.
func (s *sender) send(ctx context.Context, t *pgwebhook.Taken) {
	began := s.now()
	r := s.attempt(ctx, t)
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)
	defer cancel()
	if ctx.Err() != nil && r.failure != "" { // shutting down: another node or the next start sends it
		s.logError("cannot release delivery", t, s.store.Release(store, t.Delivery))
		return
	}
	a := pgwebhook.Attempt{Number: t.Attempts, At: began, Took: s.now().Sub(began), Status: r.status, Error: r.failure,
		Response: r.response}
	health, err := s.store.Finish(store, t.Delivery, a, s.retry.next(t, r))
	if err != nil { // due again when the lease ends
		s.logError("cannot store attempt", t, err)
		return
	}
	switch {
	case r.isGone:
		err = s.endpoints.disable(store, t.Org, t.Target, DisabledGone)
	case health.Failures >= minFailures && s.now().Sub(health.Since) >= minFailing:
		err = s.endpoints.disable(store, t.Org, t.Target, DisabledFailing)
	}
	s.logError("cannot disable endpoint", t, err)
}

func (s *sender) logError(what string, t *pgwebhook.Taken, err error) {
	if err != nil {
		s.log.Error(what, "delivery", t.ID, "err", err)
	}
}

// result is the result of an attempt.
type result struct {
	status   int
	failure  string // "": success
	response string
	isGone   bool // the endpoint responded with 410
	isFinal  bool // retrying is pointless
}

// attempt sends a delivery once.
func (s *sender) attempt(ctx context.Context, t *pgwebhook.Taken) result {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if t.Target == pgwebhook.Mail {
		return s.mail(ctx, &t.Delivery)
	}
	ctx, span := s.tracer.Call(ctx, "send a webhook", attribute.Int("proofline.attempt", t.Attempts))
	r, err := s.post(ctx, t)
	if err != nil {
		r.failure = outbound.Failure(ctx, err)
	}
	span.SetAttributes(attribute.Int("http.response.status_code", r.status))
	traces.End(span, r.failure == "")
	return r
}

// post sends a delivery to its endpoint.
func (s *sender) post(ctx context.Context, t *pgwebhook.Taken) (r result, err error) {
	id, now := "msg_"+t.ID.String(), s.now()
	signature, err := s.signer.sign(t, id, now)
	if err != nil {
		s.logError("cannot sign a webhook", t, err)
		return r, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Recipient, strings.NewReader(t.Payload))
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	resp, err := s.client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRead))
	r = result{status: resp.StatusCode, response: printable(string(body)), isGone: resp.StatusCode == http.StatusGone}
	r.isFinal = r.isGone
	if resp.StatusCode/100 != 2 {
		r.failure = "responded with " + strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode,
			http.StatusText(resp.StatusCode)))
	}
	return r, nil
}

// printable returns the beginning of a response in printable form, for the log.
func printable(s string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	if runes := []rune(clean); len(runes) > maxKept {
		clean = string(runes[:maxKept])
	}
	return strings.TrimSpace(clean)
}
