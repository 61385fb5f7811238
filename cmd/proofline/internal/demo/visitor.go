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

// habit is what sets a visitor apart from the others.
type habit int

const (
	plain    habit = iota
	absent         // never claims
	twice          // joins again with the same ticket
	simple         // has no script to make a secret, so the server makes it
	impostor       // shows a wrong secret first
	eager          // claims before the turn
	greedy         // claims again
	shopper        // comes from the shop, and buys there
)

// share is how many in a hundred visitors have a habit.
var share = []struct {
	habit   habit
	percent int
}{{absent, 12}, {twice, 5}, {simple, 4}, {impostor, 2}, {eager, 2}, {greedy, 2}, {shopper, 30}}

// mostShoppers is how many there are at most: each is shown all seats.
const mostShoppers = 500

// sized returns how many of n visitors have a habit.
func sized(n int, h habit, percent int) int {
	n = max(1, n*percent/100)
	if h == shopper {
		return min(n, mostShoppers)
	}
	return n
}

// visitor is one of the crowd. Its goroutine alone uses it until the sale is over.
type visitor struct {
	habit   habit
	arrives time.Time
	secret  [fairness.SecretSize]byte
	ticket  string

	joined  api.Joined
	place   api.Place // as last seen
	settled bool      // admitted, or given up on purpose
	pass    api.Pass
	back    api.WayBack // as the shop's front has signed it
	cookie  string      // that it gave for the pass
}

// invite makes the crowd: who has which habit, and when they come.
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

// first returns one of the visitors with a habit: everybody has one.
func (d *demo) first(h habit) *visitor {
	for _, v := range d.crowd {
		if v.habit == h {
			return v
		}
	}
	return nil
}

// visitorsHTTP is what all visitors send through.
func visitorsHTTP() *http.Client {
	const connections = 64
	t := &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute}
	return &http.Client{Transport: t, Timeout: 20 * time.Second}
}

// visit is one visitor's sale, from arrival to pass. What the server says is
// held against what it must say; an error means that there is no going on.
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
		d.expect(errors.Is(err, api.ErrNotCalled), "an early claim is answered %v", err)
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
	d.seen.join(time.Now())
	if v.habit == simple {
		if err := v.take(d.origin()); err != nil {
			return err
		}
	}
	j := &v.joined
	d.expect(j.Ticket == v.ticket && !j.Again, "ticket %s joins first and is answered as %s, again: %t", v.ticket, j.Ticket, j.Again)
	d.expect(!j.Time.Before(j.WindowFrom) && j.Time.Before(j.WindowTo), "ticket %s of %s is in the window from %s to %s", v.ticket, j.Time, j.WindowFrom, j.WindowTo)
	if v.habit == twice {
		again, err := d.visitor.Join(ctx, v.ticket)
		if err != nil {
			return err
		}
		d.expect(again.Again && again.Index == j.Index && again.Window == j.Window && again.Seq == j.Seq && again.Time.Equal(j.Time),
			"ticket %s joins again and gets another arrival", v.ticket)
	}
	return nil
}

// take keeps the secret that the server made.
func (v *visitor) take(origin string) error {
	b, err := base64.RawURLEncoding.DecodeString(v.joined.Secret)
	if err != nil || len(b) != len(v.secret) {
		return errors.New("a join without a ticket is answered without a secret")
	}
	v.secret = [fairness.SecretSize]byte(b)
	v.ticket = fairness.NewTicket(origin, v.secret).String()
	return nil
}

// wait asks as often as the server tells until the ticket is called.
func (d *demo) wait(ctx context.Context, v *visitor) (err error) {
	for {
		earlier := v.place.Position
		if v.place, err = d.visitor.Place(ctx, v.ticket); err != nil {
			return err
		}
		d.expect(earlier == 0 || v.place.Position == earlier, "place of %s moves from %d to %d", v.ticket, earlier, v.place.Position)
		switch v.place.Status {
		case string(fairness.StatusWaiting), string(fairness.StatusDrawn):
		case string(fairness.StatusCalled):
			return nil
		default:
			d.expect(false, "ticket %s is %s before it claimed", v.ticket, v.place.Status)
			return nil
		}
		pause := time.Duration(v.place.PollAfter) * time.Millisecond
		pause += time.Duration(mathrand.Float64() * 0.3 * float64(pause)) //nolint:gosec // as pages vary it
		if err := sleepUntil(ctx, time.Now().Add(pause)); err != nil {
			return err
		}
	}
}

// miss lets the time go by, then tries anyway.
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
	d.expectStatus(err, http.StatusGone, "a claim after the time")
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
		return d.mislead(ctx, v)
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
