package issuers

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Bounds of what is asked in a round. The rest has its turn in the next ones.
const (
	maxAsked = 256 // pages
	maxAnOrg = 32  // pages of one organization
	maxAHost = 4   // pages on one host, of all organizations
)

// place is a host on which an organization has pages.
type place struct {
	org  uuid.UUID
	host string
}

// hostOf returns the host of an address as it is counted: all ports and spellings of a name are one host.
func hostOf(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// draw chooses whom to ask in a round: all services, which the operator chose, and pages within the bounds. The
// organizations take turns, so that none waits because another one has many pages. Those asked longest ago come first;
// asked returns the round in which a target was asked.
func draw(needed []target, asked func(key string) uint64) (drawn []target) {
	isDrawn := map[string]bool{}
	pages := map[uuid.UUID][]target{}
	latest := map[place]uint64{}
	for _, t := range needed {
		if !t.isOwn {
			at := place{t.org, t.host}
			latest[at] = max(latest[at], asked(t.key))
			pages[t.org] = append(pages[t.org], t)
		} else if !isDrawn[t.key] {
			isDrawn[t.key] = true
			drawn = append(drawn, t)
		}
	}
	for _, list := range pages {
		slices.SortFunc(list, func(a, b target) int {
			return cmp.Or(cmp.Compare(asked(a.key), asked(b.key)), cmp.Compare(a.key, b.key))
		})
	}
	hosts, orgs, total := map[string]int{}, map[uuid.UUID]int{}, 0
	for {
		var turn []target // the next page of each organization
		for org, list := range pages {
			i := slices.IndexFunc(list, func(t target) bool { return !isDrawn[t.key] && hosts[t.host] < maxAHost })
			if i < 0 || orgs[org] == maxAnOrg {
				delete(pages, org)
				continue
			}
			pages[org], turn = list[i:], append(turn, list[i])
		}
		if len(turn) == 0 {
			return drawn
		}
		slices.SortFunc(turn, func(a, b target) int {
			return cmp.Or(cmp.Compare(latest[place{a.org, a.host}], latest[place{b.org, b.host}]),
				bytes.Compare(a.org[:], b.org[:]))
		})
		for _, t := range turn {
			if isDrawn[t.key] || hosts[t.host] == maxAHost {
				continue
			}
			isDrawn[t.key] = true
			drawn = append(drawn, t)
			hosts[t.host]++
			orgs[t.org]++
			if total++; total == maxAsked {
				return drawn
			}
		}
	}
}
