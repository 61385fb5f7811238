package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/visitor"
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

// maxShoppers limits the number of shoppers, because the shop shows all seats to each of them.
const maxShoppers = 500

// sized returns how many of n visitors have a habit.
func sized(n int, h habit, percent int) int {
	n = max(1, n*percent/100)
	if h == shopper {
		return min(n, maxShoppers)
	}
	return n
}

// person is one visitor of the crowd. Until the sale is over, only its own goroutine uses it.
type person struct {
	habit  habit
	guest  simulate.Guest
	secret [fairness.SecretSize]byte
	ticket string

	joined  api.Joined
	place   api.Place // latest known place
	settled bool      // admitted, or skipped on purpose
	pass    api.Pass
	back    api.ReturnURL // signed by the proxy
	cookie  string        // session cookie from the proxy
}

// newPerson returns a visitor with a ticket for the room with this origin.
func newPerson(origin string, h habit, g simulate.Guest) *person {
	v := &person{habit: h, guest: g}
	if h == absent {
		v.guest.Claims = simulate.Forever
	}
	_, _ = rand.Read(v.secret[:]) // never fails
	v.ticket = fairness.NewTicket(origin, v.secret).String()
	return v
}

// crowd represents the visitors of a sale.
type crowd struct {
	room   *demoRoom
	front  *front
	checks *checks
	opens  time.Time // opening, to which arrival times are relative
	people []*person
	bought sync.Once // narrates the first purchase
}

// newCrowd makes a crowd of guests, and distributes the habits among them.
func newCrowd(room *demoRoom, f *front, c *checks, opens time.Time, guests []simulate.Guest) *crowd {
	habits := make([]habit, 0, len(guests))
	for _, s := range share {
		for range sized(len(guests), s.habit, s.percent) {
			habits = append(habits, s.habit)
		}
	}
	habits = habits[:len(guests)] // visitors beyond the habits' shares are plain
	mathrand.Shuffle(len(habits), func(i, j int) { habits[i], habits[j] = habits[j], habits[i] })
	people := make([]*person, len(guests))
	for i, g := range guests {
		people[i] = newPerson(room.origin(), habits[i], g)
	}
	return &crowd{room: room, front: f, checks: c, opens: opens, people: people}
}

// with returns the visitors with a habit.
func (c *crowd) with(h habit) []*person {
	return slices.DeleteFunc(slices.Clone(c.people), func(v *person) bool { return v.habit != h })
}

// visit plays one visitor, from arrival to pass or purchase. It checks the server's answers; an
// error means that the visitor cannot continue.
func (c *crowd) visit(ctx context.Context, v *person) error {
	arrives := time.Until(c.opens) + time.Duration(v.guest.Arrives)
	err := visitor.Run(ctx, &v.guest, arrives, func(ctx context.Context, r visitor.Request) (visitor.Answer, error) {
		switch r {
		case visitor.Join:
			return visitor.Answer{}, c.arrive(ctx, v)
		case visitor.Look:
			return c.look(ctx, v)
		default:
			return visitor.Answer{}, c.claim(ctx, v)
		}
	})
	switch {
	case err != nil:
		return err
	case v.habit == absent:
		return c.claimTooLate(ctx, v)
	case v.habit == shopper && v.settled:
		return c.buy(ctx, v)
	}
	return nil
}

// arrive joins the line. A shopper visits the shop before that; an eager visitor then claims too
// early.
func (c *crowd) arrive(ctx context.Context, v *person) error {
	if v.habit == shopper {
		if err := c.comeToShop(ctx, v); err != nil {
			return err
		}
	}
	if err := c.join(ctx, v); err != nil {
		return err
	}
	if v.habit == eager {
		_, err := c.room.visitor.Claim(ctx, v.ticket, v.secret)
		c.checks.expect(errors.Is(err, api.ErrNotCalled), "an early claim is answered with %v", err)
	}
	return nil
}

func (c *crowd) join(ctx context.Context, v *person) (err error) {
	ask := v.ticket
	if v.habit == simple {
		ask = ""
	}
	if v.joined, err = c.room.visitor.Join(ctx, ask); err != nil {
		return err
	}
	c.checks.join(time.Now())
	if v.habit == simple {
		if err := v.takeSecret(c.room.origin()); err != nil {
			return err
		}
	}
	j := &v.joined
	c.checks.expect(j.Ticket == v.ticket && !j.Again,
		"the first join of %s is answered with %s, again: %t", v.ticket, j.Ticket, j.Again)
	c.checks.expect(!j.Time.Before(j.WindowFrom) && j.Time.Before(j.WindowTo),
		"ticket %s arrived at %s in the window from %s to %s", v.ticket, j.Time, j.WindowFrom, j.WindowTo)
	if v.habit == twice {
		again, err := c.room.visitor.Join(ctx, v.ticket)
		if err != nil {
			return err
		}
		isSame := again.Index == j.Index && again.Window == j.Window && again.Seq == j.Seq && again.Time.Equal(j.Time)
		c.checks.expect(again.Again && isSame, "ticket %s joins again and gets another arrival", v.ticket)
	}
	return nil
}

// takeSecret stores the secret that the server made.
func (v *person) takeSecret(origin string) error {
	b, err := base64.RawURLEncoding.DecodeString(v.joined.Secret)
	if err != nil || len(b) != len(v.secret) {
		return errors.New("the answer to a join without a ticket has no secret")
	}
	v.secret = [fairness.SecretSize]byte(b)
	v.ticket = fairness.NewTicket(origin, v.secret).String()
	return nil
}

// look asks for the visitor's place.
func (c *crowd) look(ctx context.Context, v *person) (visitor.Answer, error) {
	before := v.place
	place, err := c.room.visitor.Place(ctx, v.ticket)
	if err != nil {
		return visitor.Answer{}, err
	}
	v.place = place
	c.checks.expect(before.Position == 0 || place.Position == before.Position,
		"the position of %s changes from %d to %d", v.ticket, before.Position, place.Position)
	a := visitor.Answer{Outcome: visitor.Again, Pause: time.Duration(place.PollAfter) * time.Millisecond}
	switch wasCalled := before.Status == string(fairness.StatusCalled); {
	case place.Status == string(fairness.StatusCalled):
		a.Outcome = visitor.Called
	case place.Status == string(fairness.StatusSkipped) && wasCalled:
		a.Outcome = visitor.Over
	case wasCalled:
		c.checks.expect(false, "a called ticket becomes %s", place.Status)
	case place.Status != string(fairness.StatusWaiting) && place.Status != string(fairness.StatusDrawn):
		c.checks.expect(false, "ticket %s is %s before it claimed", v.ticket, place.Status)
		a.Outcome = visitor.Over
	}
	return a, nil
}

// claimTooLate claims a place after the claim time.
func (c *crowd) claimTooLate(ctx context.Context, v *person) error {
	c.checks.expect(v.place.Reason == string(fairness.NoShow), "a no-show is skipped as %q", v.place.Reason)
	_, err := c.room.visitor.Claim(ctx, v.ticket, v.secret)
	c.checks.expectStatus(err, http.StatusGone, "a claim after the claim time")
	v.settled = true
	return nil
}

func (c *crowd) claim(ctx context.Context, v *person) (err error) {
	if v.habit == impostor {
		_, err := c.room.visitor.Claim(ctx, v.ticket, [fairness.SecretSize]byte{1, 2, 3})
		c.checks.expectStatus(err, http.StatusForbidden, "a wrong secret")
	}
	if v.pass, err = c.room.visitor.ClaimTo(ctx, v.ticket, v.secret, v.back); err != nil {
		return err
	}
	v.settled = true
	if v.habit == greedy {
		again, err := c.room.visitor.Claim(ctx, v.ticket, v.secret)
		c.checks.expect(err == nil && again == v.pass, "a second claim is answered with %v and another pass", err)
	}
	if v.habit == shopper && slices.Index(c.with(shopper), v) == 0 {
		return c.tryForgedReturn(ctx, v)
	}
	return nil
}
