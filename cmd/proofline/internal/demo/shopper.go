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
)

// looksAround is how long a shopper takes at most to choose a seat.
const looksAround = time.Second

// answer is what the shop's front said.
type answer struct {
	status int
	to     string // Location
	queue  string // Proofline-Queue
	cookie string // NAME=VALUE of the only one; empty: none, or it is taken away
	isGone bool   // the cookie is taken away
	body   string
}

// ask sends a request to the shop's front, as a browser does that opens a page.
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
	a = answer{status: w.StatusCode, to: w.Header.Get("Location"), queue: w.Header.Get("Proofline-Queue"), body: string(body)}
	if c := w.Cookies(); len(c) == 1 {
		if a.isGone = c[0].MaxAge < 0; !a.isGone {
			a.cookie = c[0].Name + "=" + c[0].Value
		}
	}
	return a, nil
}

// led tells whether somebody is led to the line.
func (d *demo) led(a answer) bool {
	room, _, _ := strings.Cut(a.to, "?")
	return room == d.room.URL && (a.status == http.StatusFound || a.status == http.StatusSeeOther) ||
		a.status == http.StatusForbidden && a.queue == d.room.URL
}

// comeToShop looks at the shop's front page, wants a ticket, and is led to the
// line, with a signed way back.
func (d *demo) comeToShop(ctx context.Context, v *visitor) error {
	home, err := d.front.ask(ctx, http.MethodGet, "/")
	if err != nil {
		return err
	}
	d.expect(home.status == http.StatusOK, "the shop's front page is answered with %d", home.status)
	tickets, err := d.front.ask(ctx, http.MethodGet, "/tickets")
	if err != nil {
		return err
	}
	join, sig, isSigned := strings.Cut(tickets.to, "&to_sig=")
	v.back = api.WayBack{To: d.front.url + "/tickets", Sig: sig}
	isLed := tickets.status == http.StatusFound && join == d.room.URL+"?to="+url.QueryEscape(v.back.To)
	d.expect(isLed && isSigned, "who wants a ticket is answered with %d and led to %q", tickets.status, tickets.to)
	return nil
}

// buy comes back with the pass, buys a seat, and is out again.
func (d *demo) buy(ctx context.Context, v *visitor) error {
	path, isBack := strings.CutPrefix(v.pass.Location, d.front.url)
	d.expect(isBack && path == "/tickets?proofline_pass="+v.pass.Pass, "the line leads back to %q", v.pass.Location)
	entered, err := d.front.ask(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	v.cookie = entered.cookie
	d.expect(entered.status == http.StatusSeeOther && entered.to == "/tickets" && v.cookie != "", "a pass is answered with %d, to %q, and %t cookie", entered.status, entered.to, v.cookie != "")
	seats, err := d.front.ask(ctx, http.MethodGet, "/tickets", "Cookie: "+v.cookie)
	if err != nil {
		return err
	}
	d.expect(seats.status == http.StatusOK && strings.Contains(seats.body, v.ticket), "the shop answers %s with %d", v.ticket, seats.status)
	choosing := time.Duration(mathrand.Int64N(int64(looksAround))) //nolint:gosec // no secret
	if err := sleepUntil(ctx, time.Now().Add(choosing)); err != nil {
		return err
	}
	bought, err := d.front.ask(ctx, http.MethodPost, "/tickets/buy", "Cookie: "+v.cookie)
	if err != nil {
		return err
	}
	d.expect(bought.status == http.StatusSeeOther && strings.HasPrefix(bought.to, "/orders/") && bought.isGone,
		"a purchase is answered with %d, to %q, and the cookie is taken away: %t", bought.status, bought.to, bought.isGone)
	order, err := d.front.ask(ctx, http.MethodGet, bought.to)
	if err != nil {
		return err
	}
	d.expect(order.status == http.StatusOK, "the order of %s is answered with %d", v.ticket, order.status)
	d.front.told.Do(func() {
		d.Narrator.Say("The first shopper is back in the shop with a pass, buys a seat, and makes room for the next one.")
	})
	return nil
}
