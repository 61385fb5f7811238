package demo

import (
	"context"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/internal/visitor"
)

// maxChoosing is the longest time that a shopper takes to choose a seat.
const maxChoosing = time.Second

// answer holds the parts of the proxy's response that matter here.
type answer struct {
	status int
	to     string // Location
	queue  string // Proofline-Queue
	cookie string // NAME=VALUE; empty: no cookie, or it is deleted
	isGone bool   // whether the cookie is deleted
	body   string
}

// ask sends the request of a browser that opens a page of the shop.
func (f *front) ask(ctx context.Context, method, path string, header ...string) (a answer, err error) {
	r, err := http.NewRequestWithContext(ctx, method, f.url+path, nil)
	if err != nil {
		return a, fmt.Errorf("ask the shop: %w", err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w, err := f.http.Do(r)
	if err != nil {
		return a, fmt.Errorf("ask the shop: %w", err)
	}
	defer func() { _ = w.Body.Close() }() // only read from
	body, err := io.ReadAll(w.Body)
	if err != nil {
		return a, fmt.Errorf("ask the shop: %w", err)
	}
	a = answer{
		status: w.StatusCode, to: w.Header.Get("Location"), queue: w.Header.Get("Proofline-Queue"), body: string(body),
	}
	if c := w.Cookies(); len(c) == 1 {
		if a.isGone = c[0].MaxAge < 0; !a.isGone {
			a.cookie = c[0].Name + "=" + c[0].Value
		}
	}
	return a, nil
}

// isQueued reports whether an answer sends the visitor to the room.
func (f *front) isQueued(a answer) bool {
	room, _, _ := strings.Cut(a.to, "?")
	return room == f.room.URL && (a.status == http.StatusFound || a.status == http.StatusSeeOther) ||
		a.status == http.StatusForbidden && a.queue == f.room.URL
}

// comeToShop opens the shop's front page and its tickets, from which the proxy
// redirects to the room with a signed return URL.
func (c *crowd) comeToShop(ctx context.Context, v *person) error {
	home, err := c.front.ask(ctx, http.MethodGet, "/")
	if err != nil {
		return err
	}
	c.checks.expect(home.status == http.StatusOK, "the shop's front page is answered with %d", home.status)
	tickets, err := c.front.ask(ctx, http.MethodGet, "/tickets")
	if err != nil {
		return err
	}
	join, sig, isSigned := strings.Cut(tickets.to, "&to_sig=")
	v.back = api.ReturnURL{To: c.front.url + "/tickets", Sig: sig}
	isRedirect := tickets.status == http.StatusFound && join == c.room.URL+"?to="+url.QueryEscape(v.back.To)
	c.checks.expect(isRedirect && isSigned,
		"a shopper without a pass is answered with %d, to %q", tickets.status, tickets.to)
	return nil
}

// buy returns to the shop with the pass and buys a seat, which ends the session.
func (c *crowd) buy(ctx context.Context, v *person) error {
	path, isBack := strings.CutPrefix(v.pass.Location, c.front.url)
	c.checks.expect(isBack && path == "/tickets?proofline_pass="+v.pass.Pass, "the room sends a shopper to %q",
		v.pass.Location)
	entered, err := c.front.ask(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	v.cookie = entered.cookie
	c.checks.expect(entered.status == http.StatusSeeOther && entered.to == "/tickets" && v.cookie != "",
		"a pass is answered with %d, to %q, with a cookie: %t", entered.status, entered.to, v.cookie != "")
	seats, err := c.front.ask(ctx, http.MethodGet, "/tickets", "Cookie: "+v.cookie)
	if err != nil {
		return err
	}
	c.checks.expect(seats.status == http.StatusOK && strings.Contains(seats.body, v.ticket),
		"the shop answers %s with %d", v.ticket, seats.status)
	choosing := time.Duration(mathrand.Int64N(int64(maxChoosing))) //nolint:gosec // no secret
	if err := visitor.Sleep(ctx, choosing); err != nil {
		return err
	}
	bought, err := c.front.ask(ctx, http.MethodPost, "/tickets/buy", "Cookie: "+v.cookie)
	if err != nil {
		return err
	}
	c.checks.expect(bought.status == http.StatusSeeOther && strings.HasPrefix(bought.to, "/orders/") && bought.isGone,
		"a purchase is answered with %d, to %q, with the cookie deleted: %t", bought.status, bought.to, bought.isGone)
	order, err := c.front.ask(ctx, http.MethodGet, bought.to)
	if err != nil {
		return err
	}
	c.checks.expect(order.status == http.StatusOK, "the order of %s is answered with %d", v.ticket, order.status)
	c.bought.Do(func() {
		c.checks.Say("The first shopper is back in the shop with a pass, buys a seat, and makes room for the next visitor.")
	})
	return nil
}
