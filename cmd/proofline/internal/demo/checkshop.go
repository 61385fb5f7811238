package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/verifier/numeral"
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
	if err := d.checkProxy(ctx, len(passes)); err != nil {
		return err
	}
	if d.seen.count() == 0 {
		n := numeral.Group(len(passes))
		d.Narrator.Say("%s came for a seat. The proxy let %s in, the shop sold %s, and the room knows of %s visits that are over:", n, n, n, n)
		d.Narrator.Say("all four agree. The proxy goes by rules that the server signed, and has told it so.")
	}
	return nil
}

// checkProxy compares what the proxy counted, and what the server knows of it.
func (d *demo) checkProxy(ctx context.Context, shoppers int) error {
	for _, f := range []struct {
		name string
		want int
	}{
		{`proofline_connector_passes_total{result="redeemed"}`, shoppers},
		{`proofline_connector_passes_total{result="refused"}`, forgedPasses},
		{`proofline_connector_releases_total`, shoppers},
		{`proofline_connector_dropped_total`, 0},
		{`proofline_connector_faults_total`, 0},
		{`proofline_connector_rules_serial`, 1},
	} {
		got, err := d.front.figure(ctx, f.name)
		if err != nil {
			return err
		}
		d.expect(got == f.want, "the proxy counts %d as %s, not %d", got, f.name, f.want)
	}
	var list struct{ Connectors []api.Connector }
	if _, err := d.organizer.Call(ctx, http.MethodGet, "/v1/sites/"+d.room.Slug+"/connectors", nil, &list); err != nil {
		return err
	}
	d.expect(len(list.Connectors) == 1 && list.Connectors[0].Kind == "proxy" && list.Connectors[0].Connected && !list.Connectors[0].Behind,
		"the server knows of the connectors %+v", list.Connectors)
	return nil
}

// figure returns what the proxy counted under a name.
func (f *front) figure(ctx context.Context, name string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.metrics, nil)
	if err != nil {
		return 0, fmt.Errorf("read figures of the proxy: %w", err)
	}
	w, err := f.http.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read figures of the proxy: %w", err)
	}
	defer func() { _ = w.Body.Close() }() // only read from
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("read figures of the proxy: there is no %s", name)
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
