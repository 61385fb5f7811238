package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/internal/wire"
)

// malformed are requests that no page sends. Each is refused and leaves no entry.
var malformed = []struct {
	what, method, path, media, body string
	status                          int
}{
	{"half a body", "POST", "/join", "application/json", `{"ticket":`, 400},
	{"a list", "POST", "/join", "application/json", `["ticket"]`, 400},
	{"a number for a ticket", "POST", "/join", "application/json", `{"ticket":42}`, 400},
	{
		"a random UUID for a ticket", "POST", "/join", "application/json",
		`{"ticket":"0b7f0d4c-6c1f-4d55-9a52-6b0a4a8b6f11"}`, 400,
	},
	{
		"a ticket in upper case", "POST", "/join", "application/json",
		`{"ticket":"0B7F0D4C-6C1F-8D55-9A52-6B0A4A8B6F11"}`, 400,
	},
	{
		"a join with a lane", "POST", "/join", "application/json",
		`{"ticket":"0b7f0d4c-6c1f-8d55-9a52-6b0a4a8b6f11","lane":"vip"}`, 400,
	},
	{"a form", "POST", "/join", "application/x-www-form-urlencoded", "ticket=0b7f0d4c-6c1f-8d55-9a52-6b0a4a8b6f11",
		415},
	{"a body of 64 KiB", "POST", "/join", "application/json", `{"ticket":"` + strings.Repeat("0", 64<<10) + `"}`, 413},
	{"a GET of the join", "GET", "/join", "", "", 405},
	{"an unknown ticket", "GET", "/tickets/0b7f0d4c-6c1f-8d55-9a52-6b0a4a8b6f11", "", "", 404},
	{"a path for a ticket", "GET", "/tickets/..%2f..%2fetc", "", "", 400},
	{
		"a claim without a secret", "POST", "/tickets/0b7f0d4c-6c1f-8d55-9a52-6b0a4a8b6f11/claim", "application/json",
		`{}`, 400,
	},
}

// sendMalformed sends the malformed requests, spread over the sale.
func (s *sale) sendMalformed(ctx context.Context) error {
	rounds := max(1, len(s.crowd.people)/(50*len(malformed)))
	pause := s.plan.lastJoin.Sub(s.plan.opens) / time.Duration(rounds*len(malformed)+1)
	for i := range rounds * len(malformed) {
		if err := visitor.Sleep(ctx, time.Until(s.plan.opens.Add(pause*time.Duration(i+1)))); err != nil {
			return err
		}
		m := malformed[i%len(malformed)]
		req, err := http.NewRequestWithContext(ctx, m.method, s.room.URL+m.path, strings.NewReader(m.body))
		if err != nil {
			return err
		}
		if m.media != "" {
			req.Header.Set("Content-Type", m.media)
		}
		resp, err := s.room.visitor.HTTP.Do(req)
		if err != nil {
			return fmt.Errorf("send %s: %w", m.what, err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return fmt.Errorf("send %s: %w", m.what, err)
		}
		s.checks.expectStatus(&api.Problem{Problem: wire.Problem{Status: resp.StatusCode, Title: resp.Status}},
			m.status, m.what)
	}
	return nil
}

// joinTooEarly joins before the room opens, unless it opens within a second, because the machine is slow: that visitor
// might get in.
func (d *demo) joinTooEarly(ctx context.Context, opens time.Time) {
	if time.Until(opens) < time.Second {
		return
	}
	_, err := d.room.visitor.Join(ctx, "")
	d.checks.expectStatus(err, http.StatusConflict, "a join before the opening")
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		d.checks.expect(p.RetryAfter > 0, "the answer to an early join has no Retry-After")
		d.checks.Say("A visitor arrives too early, and is asked to come back in %s.", p.RetryAfter)
	}
}
