package connector

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	cookie string // of a session: its name and =
	proof  string // of a proof, likewise
	tag    [8]byte
	link   *link // the same as long as the room is
}

func newDoor(name string, r rules.Room, l *link) *door {
	return &door{r, name, CookiePrefix + name + "=", proofPrefix + name + "=", tagOf(r.URL, r.Origin), l}
}

// bindOf returns what sessions of a client are tied to.
func (d *door) bindOf(client netip.Addr, agent string) [8]byte {
	switch d.Bind {
	case rules.BindNetwork:
		return networkOf(client)
	case rules.BindBrowser:
		return familyOf(agent)
	}
	return [8]byte{}
}

// link is what is known of a room's server.
type link struct {
	url, origin string

	keys    atomic.Pointer[map[string]ed25519.PublicKey] // by id; nil: never had
	returns atomic.Pointer[returns]                      // nil: never had

	asking sync.Mutex // held while keys are asked for because of an unknown one
	asked  time.Time  // guarded by asking

	mu       sync.Mutex // guards what follows
	since    time.Time  // out of reach since then; zero: it is not
	latest   time.Time  // of the failures since then that no visitor can bring about
	strange  string     // what was logged last about the server's answers
	openings []Opening

	gate     gate     // has its own lock
	observed observed // likewise
}

// Opening is a time in which everybody was let through, as a room was out of
// reach.
type Opening struct {
	From  time.Time
	Until time.Time // zero: it goes on
	Let   uint64    // requests let through without a pass

	id [16]byte // in reports
}

// down returns since when the room is out of reach; zero: it is not.
func (l *link) down() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// heard keeps whether the room answered. After the failure of a request that a
// visitor has shaped, the room is asked at once whether it is there.
func (c *Connector) heard(l *link, err error, isShaped bool) {
	now := c.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	isDown := errors.Is(err, errUnreachable)
	if isDown && isShaped {
		ring(c.ask)
	} else {
		l.latest = now
	}
	switch {
	case isDown && l.since.IsZero():
		l.since = now
		c.options.Log.Error("room cannot be reached", "room", l.url, "err", err)
	case !isDown && !l.since.IsZero():
		c.options.Log.Info("room can be reached again", "room", l.url, "after", now.Sub(l.since))
		l.since = time.Time{}
		c.shut(l, now, lineAgain)
	}
}

// lineAgain is logged when an opening ends as it should.
const lineAgain = "visitors wait in line again"

// shut ends the opening that goes on, if one does, and logs why. The caller holds
// the lock.
func (c *Connector) shut(l *link, now time.Time, why string) {
	n := len(l.openings)
	if n == 0 || !l.openings[n-1].Until.IsZero() {
		return
	}
	o := &l.openings[n-1]
	o.Until = now
	c.options.Log.Warn(why, "room", l.url, "from", o.From, "let_through", o.Let)
	if c.options.Token != "" && !c.past.add(pastOpening{l.url, *o}) {
		c.options.Log.Error("an opening is not recorded: there are too many", "room", l.url, "from", o.From)
	}
	ring(c.record.bell)
}

// opens tells whether everybody is let through by now, and counts that one is.
// The room must have failed to answer at the beginning and at the end of that
// time, the second time to a request that no visitor has shaped: neither one
// failure nor a visitor opens anything.
func (c *Connector) opens(d *door) bool {
	after, ok := d.Failure.OpenAfter()
	l, now := d.link, c.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok || l.since.IsZero() || l.latest.Sub(l.since) < after {
		return false
	}
	if n := len(l.openings); n == 0 || !l.openings[n-1].Until.IsZero() {
		l.openings = append(l.openings, Opening{From: now, id: newRaw()})
		if len(l.openings) > maxIntervals {
			l.openings = l.openings[1:]
		}
		c.options.Log.Error("everybody is let through, for the room is out of reach", "room", d.name, "since", l.since)
		ring(c.record.bell)
	}
	l.openings[len(l.openings)-1].Let++
	return true
}

// request is what goes to a server of rooms.
type request struct {
	method string
	url    string
	token  string // empty: none
	client string // of a visitor, as the server is told; empty: nothing
	json   []byte // empty: no body
	// isShaped is set where a visitor decides what is in the request, and so
	// perhaps that it fails.
	isShaped bool
}

// call sends a request to a room and reads the answer. It remembers whether
// there was one, even if the visitor no longer waits for it. Error:
// errUnreachable.
func (c *Connector) call(ctx context.Context, l *link, q request) (status int, body []byte, err error) {
	defer func() { c.heard(l, err, q.isShaped) }()
	return c.exchange(ctx, q)
}

// exchange sends a request and reads the answer, whoever waits for it. Error:
// errUnreachable.
func (c *Connector) exchange(ctx context.Context, q request) (status int, body []byte, err error) {
	if !c.guarded("a request to "+q.url, func() { status, body, err = c.roundTrip(ctx, q) }) {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", q.url, errUnreachable, errFault)
	}
	return status, body, err
}

func (c *Connector) roundTrip(ctx context.Context, q request) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, q.url, bytes.NewReader(q.json))
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", q.url, errUnreachable, err)
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.client != "" {
		r.Header.Set(ClientHeader, q.client)
	}
	if len(q.json) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.options.Client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", q.url, errUnreachable, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		return 0, nil, fmt.Errorf("ask %s: %w: status %d", q.url, errUnreachable, answer.StatusCode)
	}
	return answer.StatusCode, body, nil
}

// getJSON reads a document of a room. Errors: errUnreachable, and errPass when
// there is no such document.
func (c *Connector) getJSON(ctx context.Context, d *door, url string, into any) error {
	status, body, err := c.call(ctx, d.link, request{method: http.MethodGet, url: url})
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
func (c *Connector) redeem(ctx context.Context, d *door, p claims, client netip.Addr, userAgent string) (*session, error) {
	who := c.clientOf(d.URL, client, userAgent)
	if c.isUsed(p.pass, who) {
		return nil, errPass
	}
	status, body, err := c.call(ctx, d.link, request{method: http.MethodPost, url: d.URL + "/passes/" + p.jti + "/redeem", token: p.token, client: base64.RawURLEncoding.EncodeToString(who[:]), isShaped: true})
	if err != nil {
		return nil, err
	}
	now := c.options.Now().UnixMilli()
	switch status {
	case http.StatusOK:
		c.spent.add(p.pass, p.ends, now)
	case http.StatusConflict, http.StatusGone:
		c.spent.add(p.pass, p.ends, now)
		c.denied.add(together(p.pass, who), p.ends, now)
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
		room: d.tag, ticket: p.ticket, pass: p.pass, token: p.token, bind: d.bindOf(client, userAgent),
		issued: c.options.Now().UnixMilli(), ends: said.Ends.UnixMilli(), most: said.Most.UnixMilli(),
	}
	s.length = (s.most - s.ends) / 3 // a session lasts at most four times its length
	return s, nil
}

// isUsed tells whether a room need not be asked about a pass that is used up.
// It must be for a while after the first time, as its answer may have been
// lost on the way to this client.
func (c *Connector) isUsed(pass, who [16]byte) bool {
	since, ok := c.spent.since(pass)
	return ok && c.options.Now().UnixMilli()-since >= usedAgain.Milliseconds() || c.denied.has(together(pass, who))
}

// together names a pass and a client.
func together(pass, who [16]byte) [16]byte {
	for i := range pass {
		pass[i] ^= who[i]
	}
	return pass
}

// clientOf names a client to a room, so that it knows a visitor again whose
// answer was lost: see rules/FORMAT.md.
func (c *Connector) clientOf(url string, client netip.Addr, userAgent string) (who [16]byte) {
	network := networkOf(client)
	mac := hmac.New(sha256.New, c.clients)
	_, _ = fmt.Fprintf(mac, "%s\n%x\n%s", url, network, userAgent) // never fails
	copy(who[:], mac.Sum(nil))
	return who
}

// errBusy is returned when a room asks to come back later.
var errBusy = errors.New("room is busy")

// isAway asks a room for its keys, and tells whether it is out of reach.
func (c *Connector) isAway(ctx context.Context, d *door) bool {
	err := c.fetchKeys(ctx, d)
	if err != nil && !errors.Is(err, errUnreachable) {
		c.options.Log.Warn("no keys of the room", "room", d.name, "err", err)
	}
	return errors.Is(err, errUnreachable)
}

// probe asks the rooms again and again whether they are there, and so has
// their keys before visitors come with passes. One that is not is asked every
// second.
func (c *Connector) probe(ctx context.Context) {
	for {
		var all sync.WaitGroup
		var isDown atomic.Bool
		for _, d := range c.current.Load().doors {
			all.Go(func() {
				c.guarded("a question to a room", func() {
					if c.isAway(ctx, d) {
						isDown.Store(true)
					}
				})
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
		case <-c.ask:
		case <-time.After(wait):
		}
	}
}
