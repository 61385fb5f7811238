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

// The timetable of the sale.
const (
	lead     = 3 * time.Second  // from the room's creation to its opening: the proxy starts meanwhile
	early    = 5 * time.Second  // pre-queue, from opening to start
	short    = 2 * time.Second  // length of the windows after the pre-queue
	late     = 8 * time.Second  // from the start to the last arrival
	serving  = 16 * time.Second // for all calls, at the outflow
	margin   = time.Second      // from a freeze to the beacon's round
	claim    = 8 * time.Second
	session  = 10 * time.Minute
	pauseAt  = 5 * time.Second // after the start
	pauseFor = 1500 * time.Millisecond
)

// plan has the times of the sale. Server and visitors share a clock.
type plan struct {
	opens, starts, lastJoin time.Time
	perMinute               int
}

// makeSale creates the sale's room, and the shop that it admits visitors to.
func (d *demo) makeSale(ctx context.Context) error {
	if err := d.makeRoom(ctx, "demo", d.sale); err != nil {
		return err
	}
	d.Narrator.Say("It listens on %s. The organizer creates a room, %s:", d.server.URL, d.room.URL)
	d.Narrator.Say("  joining opens at %s; arrivals of the first %s are shuffled among each other,",
		d.plan.opens.Format("15:04:05"), early)
	d.Narrator.Say("  later ones within windows of %s; %s visitors a minute are admitted.",
		short, numeral.Group(d.plan.perMinute))
	if err := d.openShop(ctx, maxShoppers/shop.SeatsInRow); err != nil {
		return err
	}
	d.Narrator.Say("A shop opens behind proofline proxy, on %s. Its tickets are for visitors who have waited.",
		d.front.url)
	return nil
}

// sale plans the sale, and returns its room's configuration without the slug.
func (d *demo) sale() map[string]any {
	opens := time.Now().Add(lead).Truncate(time.Millisecond)
	starts := opens.Add(early)
	perMinute := max(1, int(float64(d.Visitors)*float64(time.Minute)/float64(serving)))
	d.plan = plan{opens, starts, starts.Add(late), perMinute}
	return map[string]any{
		"title": "Demo sale", "signed_return": true, "opens": opens, "starts": starts,
		"windows": []map[string]any{
			{"from": opens, "length": early.String()}, {"from": starts, "length": short.String()},
		},
		"outflow": map[string]any{"per_minute": d.plan.perMinute, "max_active": 0},
		"claim":   claim.String(), "session": session.String(), "margin": margin.String(), "quorum": len(witnessNames),
	}
}

// makeRoom creates a room and adds its log to the witnesses. If the data directory
// is from an earlier run, it takes the next free slug.
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
	return d.thirdParties.follow(d.room.VKey)
}

// arrival draws a visitor's arrival time: many arrive at the opening, some before
// the start, and a crowd at the start that fades.
func (p *plan) arrival(r *rand.Rand) time.Time {
	const edge = 50 * time.Millisecond // so that jitter moves no arrival into another window
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
