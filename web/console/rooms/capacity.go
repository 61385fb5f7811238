package rooms

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/web/console/format"
)

// capacityForm holds the fields of the calculator.
type capacityForm struct {
	Capacity string // visitors at once
	Stay     string // how long each stays, in words
	People   string // total number of visitors
	NoShow   string // percentage of called visitors who do not show up
}

func readCapacityForm(v url.Values) capacityForm {
	get := func(name string) string { return format.Clean(v.Get(name)) }
	return capacityForm{get("capacity"), get("stay"), get("people"), get("no_show")}
}

// flow is the outflow for a capacity.
type flow struct {
	PerMinute uint32        // visitors to call
	Capacity  uint32        // visitors at once
	Through   time.Duration // time until all have entered; 0: unknown
	Called    uint64        // visitors to call, including no-shows
}

// flow calculates the outflow. It reports whether the form is complete.
func (f capacityForm) flow() (flow, bool) {
	capacity, okCapacity := format.ReadCount(f.Capacity)
	stay, okStay := format.ReadLength(f.Stay)
	if !okCapacity || !okStay || stay <= 0 || capacity == 0 {
		return flow{}, false
	}
	r := flow{Capacity: capacity}
	rate := float64(capacity) / stay.Minutes()
	r.PerMinute = uint32(min(max(math.Floor(rate), 1), float64(fairness.MaxRate)))
	if people, ok := format.ReadCount(f.People); ok && people > 0 {
		r.Through = time.Duration(math.Ceil(float64(people)/float64(r.PerMinute))) * time.Minute
		away, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(f.NoShow, "%")), 64)
		if err != nil || away < 0 || away > 95 {
			away = 0
		}
		r.Called = uint64(math.Ceil(float64(people) / (1 - away/100)))
	}
	return r, true
}

// Words describes the outflow. The editor's script has the same text (web/ui/src/console/capacity.ts).
func (f flow) Words() string {
	text := fmt.Sprintf("Let in %s per minute, with at most %s at once.", format.Number(f.PerMinute),
		format.Number(f.Capacity))
	if f.Through > 0 {
		text += fmt.Sprintf(" Everyone is through after about %s, and about %s have to be called for that.",
			format.Duration(f.Through), format.Number(f.Called))
	}
	return text
}
