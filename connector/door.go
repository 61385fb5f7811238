package connector

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// errUnreachable is returned when a room's server does not answer, or answers
// with a fault of its own (5xx).
var errUnreachable = errors.New("room cannot be reached")

// door is a room as the connector sees it.
type door struct {
	rules.Room
	name   string
	cookie string // its name and =
	tag    [8]byte
	link   *link // the same as long as the room is
}

func newDoor(name string, r rules.Room) *door {
	return &door{r, name, CookiePrefix + name + "=", tagOf(r.URL, r.Origin), new(link)}
}

// bindOf returns what sessions of a client are tied to.
func (d *door) bindOf(client netip.Addr) [8]byte {
	if d.Bind != rules.BindNetwork {
		return [8]byte{}
	}
	return networkOf(client)
}

// link is what is known of a room's server.
type link struct {
	keys atomic.Pointer[map[string]ed25519.PublicKey] // by id; nil: never had

	asking sync.Mutex // held while keys are asked for because of an unknown one
	asked  time.Time  // guarded by asking

	mu       sync.Mutex // guards what follows
	since    time.Time  // out of reach since then; zero: it is not
	latest   time.Time  // of the failures since then
	openings []Opening

	gate gate // has its own lock
}

// Opening is a time in which everybody was let through, as a room was out of
// reach.
type Opening struct {
	From  time.Time
	Until time.Time // zero: it goes on
	Let   uint64    // requests let through without a pass
}

// down returns since when the room is out of reach; zero: it is not.
func (l *link) down() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// heard keeps whether the room answered.
func (c *Connector) heard(d *door, err error) {
	l, now := d.link, c.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	isDown := errors.Is(err, errUnreachable)
	l.latest = now
	switch {
	case isDown && l.since.IsZero():
		l.since = now
		c.options.Log.Error("room cannot be reached", "room", d.name, "failure", d.Failure, "err", err)
	case !isDown && !l.since.IsZero():
		c.options.Log.Info("room can be reached again", "room", d.name, "after", now.Sub(l.since))
		l.since = time.Time{}
		if n := len(l.openings); n > 0 && l.openings[n-1].Until.IsZero() {
			l.openings[n-1].Until = now
			c.options.Log.Warn("visitors wait in line again", "room", d.name, "let_through", l.openings[n-1].Let)
		}
	}
}

// opens tells whether everybody is let through by now, and counts that one is.
// The room must have failed to answer at the beginning and at the end of that
// time: one failure alone opens nothing.
func (c *Connector) opens(d *door) bool {
	after, ok := d.Failure.OpenAfter()
	l, now := d.link, c.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || l.since.IsZero() || l.latest.Sub(l.since) < after {
		return false
	}
	if n := len(l.openings); n == 0 || !l.openings[n-1].Until.IsZero() {
		l.openings = append(l.openings, Opening{From: now})
		if len(l.openings) > maxIntervals {
			l.openings = l.openings[1:]
		}
		c.options.Log.Error("everybody is let through, for the room is out of reach", "room", d.name, "since", l.since)
	}
	l.openings[len(l.openings)-1].Let++
	return true
}

// call sends a request to a room and reads the answer. It remembers whether
// there was one: it does not matter whether the visitor waits for it. Error:
// errUnreachable.
func (c *Connector) call(ctx context.Context, d *door, method, url, token string) (status int, body []byte, err error) {
	defer func() { c.heard(d, err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", d.name, errUnreachable, err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.options.Client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", d.name, errUnreachable, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		return 0, nil, fmt.Errorf("ask %s: %w: status %d", d.name, errUnreachable, answer.StatusCode)
	}
	return answer.StatusCode, body, nil
}

// getJSON reads a document of a room. Errors: errUnreachable, and errPass when
// there is no such document.
func (c *Connector) getJSON(ctx context.Context, d *door, url string, into any) error {
	status, body, err := c.call(ctx, d, http.MethodGet, url, "")
	if err != nil {
		return err
	}
	if status != http.StatusOK || json.Unmarshal(body, into) != nil {
		return fmt.Errorf("read %s: status %d: %w", url, status, errPass)
	}
	return nil
}

// redeem uses a pass up and returns the session that begins. Errors: errPass,
// errBusy, errUnreachable.
func (c *Connector) redeem(ctx context.Context, d *door, p claims, client netip.Addr) (*session, error) {
	status, body, err := c.call(ctx, d, http.MethodPost, d.URL+"/passes/"+p.jti+"/redeem", p.token)
	if err != nil {
		return nil, err
	}
	switch status {
	case http.StatusOK, http.StatusConflict, http.StatusGone:
		c.spent.add(p.pass, p.ends, c.options.Now().UnixMilli())
	}
	switch status {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return nil, errBusy
	default:
		return nil, errPass
	}
	var said struct {
		Pass string    `json:"pass_id"`
		Ends time.Time `json:"ends"`
		Most time.Time `json:"ends_at_most"`
	}
	if json.Unmarshal(body, &said) != nil || said.Pass != p.jti || !said.Most.After(said.Ends) {
		return nil, fmt.Errorf("redeem at %s: %w: the answer is none", d.name, errPass)
	}
	s := &session{
		room: d.tag, ticket: p.ticket, pass: p.pass, token: p.token, bind: d.bindOf(client),
		issued: c.options.Now().UnixMilli(), ends: said.Ends.UnixMilli(), most: said.Most.UnixMilli(),
	}
	s.length = (s.most - s.ends) / 3 // a session lasts at most four times its length
	return s, nil
}

// errBusy is returned when a room asks to come back later.
var errBusy = errors.New("room is busy")

// probe asks the rooms again and again whether they are there, and so has
// their keys before visitors come with passes. One that is not is asked every
// second.
func (c *Connector) probe(ctx context.Context) {
	for {
		var all sync.WaitGroup
		var isDown atomic.Bool
		for _, d := range c.current.Load().doors {
			all.Go(func() {
				err := c.fetchKeys(ctx, d)
				if errors.Is(err, errUnreachable) {
					isDown.Store(true)
				} else if err != nil {
					c.options.Log.Warn("no keys of the room", "room", d.name, "err", err)
				}
			})
		}
		all.Wait()
		wait := c.options.Probe
		if isDown.Load() {
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
