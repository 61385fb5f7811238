package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/fairness"
)

// habit is a visitor's behavior.
type habit int

const (
	plain    habit = iota
	absent         // never claims
	twice          // joins again with the same ticket
	simple         // has no script to make a secret, so the server makes one
	impostor       // sends a wrong secret first
	eager          // claims before being called
	greedy         // claims again
	shopper        // comes from the shop, and buys there
)

// share is the percentage of visitors with a habit.
var share = []struct {
	habit   habit
	percent int
}{{absent, 12}, {twice, 5}, {simple, 4}, {impostor, 2}, {eager, 2}, {greedy, 2}, {shopper, 30}}

// maxShoppers limits the shoppers, as the shop shows all seats to each of them.
const maxShoppers = 500

// sized returns the number of visitors with a habit, of n visitors.
func sized(n int, h habit, percent int) int {
	n = max(1, n*percent/100)
	if h == shopper {
		return min(n, maxShoppers)
	}
	return n
}

// visitor is one of the crowd. Until the sale is over only its own goroutine uses it.
type visitor struct {
	habit   habit
	arrives time.Time
	secret  [fairness.SecretSize]byte
	ticket  string

	joined  api.Joined
	place   api.Place // the latest
	settled bool      // admitted, or skipped on purpose
	pass    api.Pass
	back    api.ReturnURL // signed by the proxy
	cookie  string        // session cookie from the proxy
}

// invite makes the crowd, with habits and arrival times.
func (d *demo) invite(origin string) {
	r := mathrand.New(mathrand.NewPCG(mathrand.Uint64(), 0)) //nolint:gosec // arrivals, no secrets
	d.crowd = make([]*visitor, d.Visitors)
	for i := range d.crowd {
		d.crowd[i] = newVisitor(origin, d.plan.arrival(r))
	}
	next := 0 // the crowd is in random order already
	for _, s := range share {
		for range sized(d.Visitors, s.habit, s.percent) {
			d.crowd[next].habit = s.habit
			next++
		}
	}
}

// newVisitor returns a plain visitor with a ticket.
func newVisitor(origin string, arrives time.Time) *visitor {
	v := &visitor{arrives: arrives}
	_, _ = rand.Read(v.secret[:]) // never fails
	v.ticket = fairness.NewTicket(origin, v.secret).String()
	return v
}

// having counts the visitors with a habit.
func (d *demo) having(h habit) (n int) {
	for _, v := range d.crowd {
		if v.habit == h {
			n++
		}
	}
	return n
}

// first returns the first visitor with a habit; every habit has one.
func (d *demo) first(h habit) *visitor {
	for _, v := range d.crowd {
		if v.habit == h {
			return v
		}
	}
	return nil
}

// visitorsHTTP returns the HTTP client that all visitors share.
func visitorsHTTP() *http.Client {
	const connections = 64
	t := &http.Transport{
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
	}
	return &http.Client{Transport: t, Timeout: 20 * time.Second}
}

// visit is one visitor's sale, from arrival to pass or purchase. It checks the
// server's answers; an error means that the visitor cannot continue.
func (d *demo) visit(ctx context.Context, v *visitor) error {
	if err := sleepUntil(ctx, v.arrives); err != nil {
		return err
	}
	if v.habit == shopper {
		if err := d.comeToShop(ctx, v); err != nil {
			return err
		}
	}
	if err := d.join(ctx, v); err != nil {
		return err
	}
	if v.habit == eager {
		_, err := d.visitor.Claim(ctx, v.ticket, v.secret)
		d.expect(errors.Is(err, api.ErrNotCalled), "an early claim is answered with %v", err)
	}
	if err := d.wait(ctx, v); err != nil {
		return err
	}
	if v.habit == absent {
		return d.miss(ctx, v)
	}
	if err := d.claim(ctx, v); err != nil || v.habit != shopper {
		return err
	}
	return d.buy(ctx, v)
}

func (d *demo) join(ctx context.Context, v *visitor) (err error) {
	ask := v.ticket
	if v.habit == simple {
		ask = ""
	}
	if v.joined, err = d.visitor.Join(ctx, ask); err != nil {
		return err
	}
	d.tally.join(time.Now())
	if v.habit == simple {
		if err := v.takeSecret(d.origin()); err != nil {
			return err
		}
	}
	j := &v.joined
	d.expect(j.Ticket == v.ticket && !j.Again,
		"the first join of %s is answered with %s, again: %t", v.ticket, j.Ticket, j.Again)
	d.expect(!j.Time.Before(j.WindowFrom) && j.Time.Before(j.WindowTo),
		"ticket %s arrived at %s in the window from %s to %s", v.ticket, j.Time, j.WindowFrom, j.WindowTo)
	if v.habit == twice {
		again, err := d.visitor.Join(ctx, v.ticket)
		if err != nil {
			return err
		}
		isSame := again.Index == j.Index && again.Window == j.Window && again.Seq == j.Seq && again.Time.Equal(j.Time)
		d.expect(again.Again && isSame, "ticket %s joins again and gets another arrival", v.ticket)
	}
	return nil
}

// takeSecret takes over the secret that the server made.
func (v *visitor) takeSecret(origin string) error {
	b, err := base64.RawURLEncoding.DecodeString(v.joined.Secret)
	if err != nil || len(b) != len(v.secret) {
		return errors.New("the answer to a join without a ticket has no secret")
	}
	v.secret = [fairness.SecretSize]byte(b)
	v.ticket = fairness.NewTicket(origin, v.secret).String()
	return nil
}

// wait polls as often as the server asks, until the ticket is called.
func (d *demo) wait(ctx context.Context, v *visitor) (err error) {
	for {
		earlier := v.place.Position
		if v.place, err = d.visitor.Place(ctx, v.ticket); err != nil {
			return err
		}
		d.expect(earlier == 0 || v.place.Position == earlier,
			"the position of %s changes from %d to %d", v.ticket, earlier, v.place.Position)
		switch v.place.Status {
		case string(fairness.StatusWaiting), string(fairness.StatusDrawn):
		case string(fairness.StatusCalled):
			return nil
		default:
			d.expect(false, "ticket %s is %s before it claimed", v.ticket, v.place.Status)
			return nil
		}
		pause := time.Duration(v.place.PollAfter) * time.Millisecond
		pause += time.Duration(mathrand.Float64() * 0.3 * float64(pause)) //nolint:gosec // jitter, as on pages
		if err := sleepUntil(ctx, time.Now().Add(pause)); err != nil {
			return err
		}
	}
}

// miss lets the claim time run out, and then tries to claim.
func (d *demo) miss(ctx context.Context, v *visitor) error {
	for {
		place, err := d.visitor.Place(ctx, v.ticket)
		if err != nil {
			return err
		}
		if place.Status == string(fairness.StatusSkipped) {
			v.place = place
			break
		}
		d.expect(place.Status == string(fairness.StatusCalled), "a called ticket becomes %s", place.Status)
		if err := sleepUntil(ctx, time.Now().Add(time.Second)); err != nil {
			return err
		}
	}
	d.expect(v.place.Reason == string(fairness.NoShow), "a no-show is skipped as %q", v.place.Reason)
	_, err := d.visitor.Claim(ctx, v.ticket, v.secret)
	d.expectStatus(err, http.StatusGone, "a claim after the claim time")
	v.settled = true
	return nil
}

func (d *demo) claim(ctx context.Context, v *visitor) (err error) {
	if v.habit == impostor {
		_, err := d.visitor.Claim(ctx, v.ticket, [fairness.SecretSize]byte{1, 2, 3})
		d.expectStatus(err, http.StatusForbidden, "a wrong secret")
	}
	if v.pass, err = d.visitor.ClaimTo(ctx, v.ticket, v.secret, v.back); err != nil {
		return err
	}
	v.settled = true
	if v.habit == greedy {
		again, err := d.visitor.Claim(ctx, v.ticket, v.secret)
		d.expect(err == nil && again == v.pass, "a second claim is answered with %v and another pass", err)
	}
	if v == d.first(shopper) {
		return d.tryForgedReturn(ctx, v)
	}
	return nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
