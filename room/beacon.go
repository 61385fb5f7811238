package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/evidence"
)

// DefaultMargin is the minimum time between a freeze and its beacon round.
const DefaultMargin = 5 * time.Second

// BeaconErr returns the default chain's [evidence.Chain.Name] and [evidence.Chain.Err]; nil without chains.
func (o *Options) BeaconErr() (name string, err error) {
	if len(o.Chains) == 0 {
		return "", nil
	}
	return o.Chains[0].Name(), o.Chains[0].Err()
}

// askRelays checks the relays of the default chain if a new room would use that chain without naming it.
func (o *Options) askRelays(ctx context.Context, c Config) {
	if c.Beacon == "" && len(o.Chains) > 0 && o.Chains[0].Reach != nil {
		_ = o.Chains[0].Reach.Check(ctx) // [Options.others] reads the result
	}
}

// others adds to the policy of a new room the beacon and witnesses that it relies on, and lists problems.
func (o *Options) others(c Config, p *fairness.Policy) invalid.List {
	refuse := func(field, detail string) invalid.List {
		return invalid.List{{Field: field, Detail: detail}}
	}
	if c.Beacon == fairness.NoBeacon || c.Beacon == "" && len(o.Chains) == 0 {
		switch {
		case c.Quorum != nil && *c.Quorum > 0:
			return refuse("quorum", "needs a beacon: witnesses show that a freeze came before its round")
		case c.Margin != nil:
			return refuse("margin", "needs a beacon")
		}
		return nil
	}
	if c.Beacon != "" && !strings.HasPrefix(c.Beacon, evidence.ChainPrefix) {
		return nil // malformed: Config.problems reports that
	}
	at := slices.IndexFunc(o.Chains,
		func(known evidence.Chain) bool { return c.Beacon == "" || known.Name() == c.Beacon })
	if at < 0 {
		var names []string
		for _, known := range o.Chains {
			names = append(names, known.Name())
		}
		return refuse("beacon", "must be a chain that the server has relays for: "+strings.Join(append(names,
			fairness.NoBeacon), ", "))
	}
	if c.Beacon == "" && o.Chains[at].Err() != nil {
		name := o.Chains[at].Name()
		return refuse("beacon",
			fmt.Sprintf("must be given now, because this server cannot reach the relays of %s, the default. "+
				"%[1]q: the room is made, and each draw waits until a relay answers. "+
				"%q: draws do not wait, and no auditor can check that you did not choose their outcome (level 1)", name,
				fairness.NoBeacon))
	}
	p.Beacon = &fairness.Beacon{Chain: o.Chains[at].Chain, Margin: fairness.Millis(DefaultMargin.Milliseconds())}
	if c.Margin != nil {
		p.Beacon.Margin = c.Margin.millis()
	}
	n := uint32(len(o.Witnesses)) //nolint:gosec // few
	least := n/2 + 1
	switch {
	case c.Quorum == nil && n > 0:
		p.Quorum = least
	case c.Quorum != nil && *c.Quorum > 0 && n == 0:
		return refuse("quorum", "must be 0: this server has no witnesses")
	case c.Quorum != nil && *c.Quorum > 0 && (*c.Quorum < least || *c.Quorum > n):
		return refuse("quorum", fmt.Sprintf("must be 0, or more than half of the %d witnesses of the server", n))
	case c.Quorum != nil:
		p.Quorum = *c.Quorum
	}
	for _, w := range o.Witnesses {
		if p.Quorum > 0 {
			p.Witnesses = append(p.Witnesses, w.Key.String())
		}
	}
	return nil
}
