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
// with a server error (5xx).
var errUnreachable = errors.New("room cannot be reached")

// room is a room of the rules, with what the connector knows about it.
type room struct {
	rules.Room
	name   string
	cookie string // session cookie: its name and =
	proof  string // proof cookie: its name and =
	tag    [8]byte
	state  *roomState // survives new rules while the room keeps its URL and origin
}

func newRoom(name string, r rules.Room, st *roomState) *room {
	return &room{r, name, CookiePrefix + name + "=", proofPrefix + name + "=", tagOf(r.URL, r.Origin), st}
}

// bindOf returns the network or browser family that a client's sessions are tied to.
func (rm *room) bindOf(client netip.Addr, agent string) [8]byte {
	switch rm.Bind {
	case rules.BindNetwork:
		return networkOf(client)
	case rules.BindBrowser:
		return familyOf(agent)
	}
	return [8]byte{}
}

// roomState is what the connector knows about a room's server.
type roomState struct {
	url, origin string

	keys    atomic.Pointer[map[string]ed25519.PublicKey] // by id; nil: never fetched
	returns atomic.Pointer[returnSigning]                // nil: not received yet

	fetching  sync.Mutex // held while an unknown key id makes us fetch the keys
	fetchedAt time.Time  // last such fetch; guarded by fetching

	mu          sync.Mutex // guards the fields up to the blank line
	downSince   time.Time  // zero: reachable
	confirmedAt time.Time  // last request not shaped by a visitor that confirmed this
	lastWarning string     // last logged complaint about the server's replies
	failOpen    []FailOpen

	gate     gate     // has its own lock
	observed observed // has its own lock
}

// FailOpen is an interval in which requests were admitted without a pass,
// because the room was out of reach.
type FailOpen struct {
	From     time.Time
	Until    time.Time // zero: still open
	Requests uint64    // admitted without a pass

	id [16]byte // in reports and the state file
}

// downAt returns since when the room is out of reach; zero: it is reachable.
func (st *roomState) downAt() time.Time {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.downSince
}

// recordAnswer records whether the room answered. When a request that a visitor
// has shaped fails, the room is probed at once.
func (c *Connector) recordAnswer(st *roomState, err error, isShaped bool) {
	now := c.options.Now()
	st.mu.Lock()
	defer st.mu.Unlock()
	isDown := errors.Is(err, errUnreachable)
	if isDown && isShaped {
		notify(c.probeNow)
	} else {
		st.confirmedAt = now
	}
	switch {
	case isDown && st.downSince.IsZero():
		st.downSince = now
		c.options.Log.Error("room cannot be reached", "room", st.url, "err", err)
	case !isDown && !st.downSince.IsZero():
		c.options.Log.Info("room can be reached again", "room", st.url, "after", now.Sub(st.downSince))
		st.downSince = time.Time{}
		c.endFailOpen(st, now, queueingAgain)
	}
}

// queueingAgain is logged when a fail-open interval ends because the room is back.
const queueingAgain = "visitors wait in line again"

// endFailOpen ends the current fail-open interval, if any, and logs why. The
// caller holds the lock.
func (c *Connector) endFailOpen(st *roomState, now time.Time, why string) {
	n := len(st.failOpen)
	if n == 0 || !st.failOpen[n-1].Until.IsZero() {
		return
	}
	o := &st.failOpen[n-1]
	o.Until = now
	c.options.Log.Warn(why, "room", st.url, "from", o.From, "requests", o.Requests)
	if c.options.Token != "" && !c.unrecorded.add(pastFailOpen{st.url, *o}) {
		c.options.Log.Error("cannot record a fail-open interval: too many are unreported", "room", st.url, "from", o.From)
	}
	notify(c.saved.changed)
}

// failsOpen reports whether the connector fails open for the room, and counts the request.
// The room must have failed at the beginning and at the end of the delay, the
// second time on a request that no visitor shaped. One failure does not open
// anything, and neither can a visitor.
func (c *Connector) failsOpen(rm *room) bool {
	after, ok := rm.Failure.FailOpenAfter()
	st, now := rm.state, c.options.Now()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !ok || st.downSince.IsZero() || st.confirmedAt.Sub(st.downSince) < after {
		return false
	}
	if n := len(st.failOpen); n == 0 || !st.failOpen[n-1].Until.IsZero() {
		st.failOpen = append(st.failOpen, FailOpen{From: now, id: newRaw()})
		if len(st.failOpen) > maxFailOpen {
			st.failOpen = st.failOpen[1:]
		}
		c.options.Log.Error("room is out of reach: failing open",
			"room", rm.name, "since", st.downSince)
		notify(c.saved.changed)
	}
	st.failOpen[len(st.failOpen)-1].Requests++
	return true
}

// request is a request to a room's server.
type request struct {
	method string
	url    string
	token  string // empty: none
	client string // [ClientHeader]; empty: none
	json   []byte // empty: no body
	// isVisitorShaped: the visitor influences the request, and could make it fail.
	isVisitorShaped bool
}

// call sends a request to a room and reads the response. It finishes even if the
// visitor gives up, and records whether the room answered. Error: errUnreachable.
func (c *Connector) call(ctx context.Context, st *roomState, req request) (status int, body []byte, err error) {
	defer func() { c.recordAnswer(st, err, req.isVisitorShaped) }()
	return c.exchange(ctx, req)
}

// exchange sends a request and reads the response. Error: errUnreachable.
func (c *Connector) exchange(ctx context.Context, req request) (status int, body []byte, err error) {
	if !c.guarded("a request to "+req.url, func() { status, body, err = c.roundTrip(ctx, req) }) {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.url, errUnreachable, errFault)
	}
	return status, body, err
}

func (c *Connector) roundTrip(ctx context.Context, req request) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, req.method, req.url, bytes.NewReader(req.json))
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.url, errUnreachable, err)
	}
	if req.token != "" {
		r.Header.Set("Authorization", "Bearer "+req.token)
	}
	if req.client != "" {
		r.Header.Set(ClientHeader, req.client)
	}
	if len(req.json) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.options.Client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("ask %s: %w: %w", req.url, errUnreachable, err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		return 0, nil, fmt.Errorf("ask %s: %w: status %d", req.url, errUnreachable, answer.StatusCode)
	}
	return answer.StatusCode, body, nil
}

// getJSON fetches a JSON document from a room. Errors: errUnreachable; errPass
// when there is no such document.
func (c *Connector) getJSON(ctx context.Context, rm *room, url string, into any) error {
	status, body, err := c.call(ctx, rm.state, request{method: http.MethodGet, url: url})
	if err != nil {
		return err
	}
	if status != http.StatusOK || json.Unmarshal(body, into) != nil {
		return fmt.Errorf("read %s: status %d: %w", url, status, errPass)
	}
	return nil
}

// redeem redeems a pass and returns the new session. Errors: errPass, errBusy,
// errUnreachable.
func (c *Connector) redeem(
	ctx context.Context, rm *room, p passClaims, client netip.Addr, userAgent string,
) (*session, error) {
	who := c.clientName(rm.URL, client, userAgent)
	if c.isUsed(p.pass, who) {
		return nil, errPass
	}
	status, body, err := c.call(ctx, rm.state, request{
		method: http.MethodPost, url: rm.URL + "/passes/" + p.jti + "/redeem", token: p.token,
		client: base64.RawURLEncoding.EncodeToString(who[:]), isVisitorShaped: true,
	})
	if err != nil {
		return nil, err
	}
	now := c.options.Now().UnixMilli()
	switch status {
	case http.StatusOK:
		c.redeemed.add(p.pass, p.ends, now)
	case http.StatusConflict, http.StatusGone:
		c.redeemed.add(p.pass, p.ends, now)
		c.denied.add(passAndClient(p.pass, who), p.ends, now)
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
		return nil, fmt.Errorf("redeem at %s: %w: malformed response", rm.name, errPass)
	}
	s := &session{
		room: rm.tag, ticket: p.ticket, pass: p.pass, token: p.token, bind: rm.bindOf(client, userAgent),
		issued: c.options.Now().UnixMilli(), ends: said.Ends.UnixMilli(), maxEnds: said.Most.UnixMilli(),
	}
	s.length = (s.maxEnds - s.ends) / 3 // a session lasts at most four times its length
	return s, nil
}

// isUsed reports whether a used pass can be refused without asking the room. For
// a while after the first use the room is still asked, because its response may
// have been lost on the way to this client.
func (c *Connector) isUsed(pass, who [16]byte) bool {
	since, ok := c.redeemed.since(pass)
	isOld := ok && c.options.Now().UnixMilli()-since >= redeemRetryWindow.Milliseconds()
	return isOld || c.denied.has(passAndClient(pass, who))
}

// passAndClient returns a key for a pass and a client.
func passAndClient(pass, who [16]byte) [16]byte {
	for i := range pass {
		pass[i] ^= who[i]
	}
	return pass
}

// clientName returns the pseudonym of a client that a room is sent, so that it
// recognizes a visitor whose response was lost: see rules/FORMAT.md.
func (c *Connector) clientName(url string, client netip.Addr, userAgent string) (who [16]byte) {
	network := networkOf(client)
	mac := hmac.New(sha256.New, c.clients)
	_, _ = fmt.Fprintf(mac, "%s\n%x\n%s", url, network, userAgent) // never fails
	copy(who[:], mac.Sum(nil))
	return who
}

// errBusy is returned when a room asks to retry later.
var errBusy = errors.New("room is busy")

// probeRoom fetches a room's keys, and reports whether the room is out of reach.
func (c *Connector) probeRoom(ctx context.Context, rm *room) bool {
	err := c.fetchKeys(ctx, rm)
	if err != nil && !errors.Is(err, errUnreachable) {
		c.options.Log.Warn("cannot fetch the room's keys", "room", rm.name, "err", err)
	}
	return errors.Is(err, errUnreachable)
}

// probe polls the rooms until ctx ends, so that outages are noticed and keys are
// there before visitors come with passes. A room that is down is polled every second.
func (c *Connector) probe(ctx context.Context) {
	for {
		var all sync.WaitGroup
		var isDown atomic.Bool
		for _, rm := range c.current.Load().rooms {
			all.Go(func() {
				c.guarded("a probe of a room", func() {
					if c.probeRoom(ctx, rm) {
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
		case <-c.probeNow:
		case <-time.After(wait):
		}
	}
}
