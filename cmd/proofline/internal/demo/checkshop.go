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

	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/verifier/numeral"
)

// releaseTimeout limits how long the proxy may take to report ended sessions to the room.
const releaseTimeout = 5 * time.Second

// shop checks that shoppers, the shop, the proxy and the room agree.
func (i *inspector) shop(ctx context.Context) error {
	bought := map[string]int{}
	for _, o := range i.crowd.front.shop.Sold() {
		bought[o.Ticket]++
	}
	var passes []string
	for _, v := range i.crowd.with(shopper) {
		passes = append(passes, v.pass.Pass)
		i.checks.expect(bought[v.ticket] == 1, "the shop sold %d seats to %s", bought[v.ticket], v.ticket)
	}
	i.checks.expect(len(bought) == len(passes), "the shop sold to %d visitors of %d", len(bought), len(passes))
	bypassed := i.crowd.front.shop.Bypassed()
	i.checks.expect(bypassed == 0, "%d requests reached the shop without having waited", bypassed)
	over, err := i.over(ctx, passes)
	if err != nil {
		return err
	}
	i.checks.expect(over == len(passes), "the room considers %d of %d sessions over", over, len(passes))
	if err := i.proxy(ctx, len(passes)); err != nil {
		return err
	}
	if i.checks.failures() == 0 {
		n := numeral.Group(len(passes))
		i.checks.Say("%s wanted a seat. The proxy let in %s, the shop sold %s seats, "+
			"and the room counts %s ended sessions:", n, n, n, n)
		i.checks.Say("all four agree. The proxy follows rules that the server signed, and has reported their version.")
	}
	return nil
}

// proxy checks the proxy's metrics, and what it reported to the server.
func (i *inspector) proxy(ctx context.Context, shoppers int) error {
	for _, f := range []struct {
		name string
		want int
	}{
		{`proofline_connector_passes_total{result="redeemed"}`, shoppers},
		{`proofline_connector_passes_total{result="refused"}`, badPasses},
		{`proofline_connector_releases_total`, shoppers},
		{`proofline_connector_dropped_total`, 0},
		{`proofline_connector_faults_total`, 0},
		{`proofline_connector_rules_version`, 1},
	} {
		got, err := i.crowd.front.metric(ctx, f.name)
		if err != nil {
			return err
		}
		i.checks.expect(got == f.want, "the proxy counts %d as %s, not %d", got, f.name, f.want)
	}
	var list wire.ConnectorList
	path := "/v1/sites/" + i.room.Slug + "/connectors"
	if err := i.room.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return err
	}
	i.checks.expect(len(list.Connectors) == 1 && list.Connectors[0].Kind == "proxy" && list.Connectors[0].Connected &&
		!list.Connectors[0].Behind,
		"the server has the connectors %+v, want one up-to-date proxy", list.Connectors)
	return nil
}

// metric returns the value of one of the proxy's metrics.
func (f *front) metric(ctx context.Context, name string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.metrics, nil)
	if err != nil {
		return 0, fmt.Errorf("read the proxy's metrics: %w", err)
	}
	w, err := f.http.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read the proxy's metrics: %w", err)
	}
	defer func() { _ = w.Body.Close() }() // only read from
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("read the proxy's metrics: no %s", name)
}

// over returns how many of the passes' sessions are over. It waits until all are, or until the
// timeout.
func (i *inspector) over(ctx context.Context, passes []string) (n int, err error) {
	for deadline := time.Now().Add(releaseTimeout); ; {
		n, err = i.overNow(ctx, passes)
		if err != nil || n == len(passes) || time.Now().After(deadline) {
			return n, err
		}
		if err := visitor.Sleep(ctx, watchInterval); err != nil {
			return n, err
		}
	}
}

// overNow asks the room how many of the passes' sessions are over.
func (i *inspector) overNow(ctx context.Context, passes []string) (over int, err error) {
	const batch = 500 // passes in one request
	for from := 0; from < len(passes); from += batch {
		touch := passes[from:min(from+batch, len(passes))]
		body, err := json.Marshal(map[string][]string{"touch": touch, "release": {}})
		if err != nil {
			return 0, err
		}
		var answer struct{ Touch []string }
		if _, err := i.room.visitor.Call(ctx, http.MethodPost, "/sessions/batch", body, &answer); err != nil {
			return 0, fmt.Errorf("ask the room about sessions: %w", err)
		}
		for _, s := range answer.Touch {
			if s == "over" {
				over++
			}
		}
	}
	return over, nil
}
