package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// releaseTime is how long the room may take to hear that visits are over.
const releaseTime = 5 * time.Second

// checkShop holds against each other what shoppers did, what the shop sold and
// what the room knows of their visits.
func (d *demo) checkShop(ctx context.Context) error {
	bought := map[string]int{}
	for _, o := range d.front.shop.Sold() {
		bought[o.Ticket]++
	}
	var passes []string
	for _, v := range d.crowd {
		if v.habit == shopper {
			passes = append(passes, v.pass.Pass)
			d.expect(bought[v.ticket] == 1, "the shop sold %d seats to %s", bought[v.ticket], v.ticket)
		}
	}
	d.expect(len(bought) == len(passes), "the shop sold to %d visitors of %d", len(bought), len(passes))
	strays := d.front.shop.Strays()
	d.expect(strays == 0, "%d requests reached the shop without having waited", strays)
	over, err := d.over(ctx, passes)
	if err != nil {
		return err
	}
	d.expect(over == len(passes), "of %d visits the room takes %d for over", len(passes), over)
	d.Narrator.Say("The shop sold %s seats to the %s who came for one, and the room knows that all their visits are over.", grouped(len(bought)), grouped(len(passes)))
	return nil
}

// over returns how many visits the room takes for over, once it has heard of all.
func (d *demo) over(ctx context.Context, passes []string) (n int, err error) {
	for deadline := time.Now().Add(releaseTime); ; {
		n, err = d.overNow(ctx, passes)
		if err != nil || n == len(passes) || time.Now().After(deadline) {
			return n, err
		}
		if err := sleepUntil(ctx, time.Now().Add(watchEvery)); err != nil {
			return n, err
		}
	}
}

// overNow asks the room about passes.
func (d *demo) overNow(ctx context.Context, passes []string) (over int, err error) {
	const most = 500 // in one request
	for from := 0; from < len(passes); from += most {
		body, err := json.Marshal(map[string][]string{"touch": passes[from:min(from+most, len(passes))], "release": {}})
		if err != nil {
			return 0, err
		}
		var said struct{ Touch []string }
		if _, err := d.visitor.Call(ctx, http.MethodPost, "/sessions/batch", body, &said); err != nil {
			return 0, fmt.Errorf("ask the room about visits: %w", err)
		}
		for _, s := range said.Touch {
			if s == "over" {
				over++
			}
		}
	}
	return over, nil
}
