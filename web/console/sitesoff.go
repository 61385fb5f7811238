package console

import (
	"strings"
	"time"

	sites "github.com/proofline/proofline/console/site"
)

// observedHour is what the counts of connectors begin with that say how many
// requests of the last hour would have waited for a room that is off; its name
// in the rules follows, with _ for -.
const observedHour = "observed_hour_"

// wouldHaveWaited says how many requests of the last hour would have waited for
// a room of the rules that is off; empty: nobody counts them.
func wouldHaveWaited(list []sites.Connector, room string, now time.Time) string {
	count, isCounted, all := observedHour+strings.ReplaceAll(room, "-", "_"), false, uint64(0)
	for _, one := range list {
		if n, ok := one.Counts[count]; ok && now.Sub(one.Seen) < time.Hour {
			isCounted, all = true, all+n
		}
	}
	switch {
	case !isCounted:
		return ""
	case all == 0:
		return "no request of the last hour would have waited"
	case all == 1:
		return "one request of the last hour would have waited"
	}
	return number(all) + " requests of the last hour would have waited"
}
