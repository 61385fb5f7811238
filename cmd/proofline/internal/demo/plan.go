package demo

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/cmd/proofline/internal/demo/shop"
	"github.com/proofline/proofline/verifier/numeral"
)

// The timetable of the sale, from the creation of the room on.
const (
	lead     = 3 * time.Second  // until it opens: the proxy starts meanwhile
	early    = 5 * time.Second  // the pre-queue, from opening to start
	short    = 2 * time.Second  // length of the windows after it
	late     = 8 * time.Second  // from start until the last visitor arrives
	serving  = 16 * time.Second // that calling everybody takes at the outflow
	margin   = time.Second      // from a freeze to the beacon's round
	claim    = 8 * time.Second
	session  = 10 * time.Minute
	pauseAt  = 5 * time.Second // after the start
	pauseFor = 1500 * time.Millisecond
)

// plan is when things happen, by the clock that server and visitors share.
type plan struct {
	opens, starts, lastJoin time.Time
	perMinute               int
}

// makeSale makes the room of the sale, and the shop that it leads to.
func (d *demo) makeSale(ctx context.Context) error {
	if err := d.makeRoom(ctx, "demo", d.sale); err != nil {
		return err
	}
	d.Narrator.Say("It listens on %s. The organizer makes a room, %s:", d.server.URL, d.room.URL)
	d.Narrator.Say("  joins from %s on; all who come in its first %s are drawn as equals,", d.plan.opens.Format("15:04:05"), early)
	d.Narrator.Say("  those after them by windows of %s; %s people a minute are let in.", short, numeral.Group(d.plan.perMinute))
	if err := d.openShop(ctx, mostShoppers/shop.SeatsInRow); err != nil {
		return err
	}
	d.Narrator.Say("A shop stands behind proofline proxy, on %s. Its tickets are for who has waited.", d.front.url)
	return nil
}

// sale plans the sale, and returns its room but for the slug.
func (d *demo) sale() map[string]any {
	opens := time.Now().Add(lead).Truncate(time.Millisecond)
	starts := opens.Add(early)
	d.plan = plan{opens, starts, starts.Add(late), max(1, int(float64(d.Visitors)*float64(time.Minute)/float64(serving)))}
	return map[string]any{
		"title": "Demo sale", "signed_return": true, "opens": opens, "starts": starts,
		"windows": []map[string]any{{"from": opens, "length": early.String()}, {"from": starts, "length": short.String()}},
		"outflow": map[string]any{"per_minute": d.plan.perMinute, "max_active": 0},
		"claim":   claim.String(), "session": session.String(), "margin": margin.String(), "quorum": len(witnessNames),
	}
}

// makeRoom creates a room, under the next free slug should the directory be
// from an earlier run, and has the witnesses follow it.
func (d *demo) makeRoom(ctx context.Context, slug string, config func() map[string]any) error {
	d.organizer = &api.Client{Base: d.server.URL, Token: d.server.Token}
	for n := 1; ; n++ {
		room := config()
		if room["slug"] = slug; n > 1 {
			room["slug"] = slug + "-" + strconv.Itoa(n)
		}
		body, err := json.Marshal(room)
		if err != nil {
			return err
		}
		_, err = d.organizer.Call(ctx, http.MethodPost, "/v1/rooms", body, &d.room)
		if p := (*api.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusConflict {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	d.visitor = &api.Client{Base: d.room.URL, HTTP: visitorsHTTP()}
	return d.outsiders.follow(d.room.VKey)
}

// arrival draws when a visitor comes: many at the opening, some before the
// start, and a crowd at the start that fades.
func (p *plan) arrival(r *rand.Rand) time.Time {
	const edge = 50 * time.Millisecond // clear of what the clocks' jitter could move
	within := func(most time.Duration, draw func() float64) time.Duration {
		for {
			if d := time.Duration(draw() * float64(time.Second)); d >= edge && d < most-edge {
				return d
			}
		}
	}
	switch u := r.Float64(); {
	case u < 0.35:
		return p.opens.Add(within(early, func() float64 { return 0.7 * r.ExpFloat64() }))
	case u < 0.6:
		return p.opens.Add(within(early, func() float64 { return early.Seconds() * r.Float64() }))
	}
	return p.starts.Add(within(late, func() float64 { return 2.5 * r.ExpFloat64() }))
}
