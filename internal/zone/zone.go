// Package zone finds time zones by name, even on machines without a time zone database.
package zone

import (
	"fmt"
	"time"
	_ "time/tzdata" // embeds the database
)

// Parse returns the time zone with an IANA name, such as Europe/Vienna. The empty name is UTC. "Local"
// is rejected.
func Parse(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("%q is not an IANA time zone", name)
	}
	return time.LoadLocation(name)
}
