// Package zone knows time zones by their names, on machines without a database
// of them, too.
package zone

import (
	"fmt"
	"time"
	_ "time/tzdata" // the database
)

// Parse returns the time zone of a name of the IANA database, such as
// Europe/Vienna. No name is UTC; the machine's own zone has none.
func Parse(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("%q names no time zone", name)
	}
	return time.LoadLocation(name)
}
