package sites

import (
	"strings"
	"time"

	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/web/console/format"
)

// observedHour is the prefix of connectors' counts of requests in the last hour that would have waited
// for a room that is off. The room's name in the rules follows, with _ for -.
const observedHour = "observed_hour_"

// wouldHaveWaited describes how many requests of the last hour would have waited for a room that is
// off. It returns "" if no connector counts them.
func wouldHaveWaited(list []site.Connector, room string, now time.Time) string {
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
	return format.Number(all) + " requests of the last hour would have waited"
}
