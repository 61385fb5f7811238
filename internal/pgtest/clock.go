//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Clock is the clock of a schema, which a test puts forward: hours pass in no
// time, and a window does not close because the machine is slow.
type Clock struct {
	URL   string        // of the schema, for everybody who is to have this clock
	Ahead time.Duration // of the true time

	t testing.TB
}

// NewClock returns the clock of a fresh, migrated schema. Its functions are
// found before PostgreSQL's own.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	own := URL(t)
	c := &Clock{t: t, URL: own}
	c.exec(`
		create table clock_ahead (ahead interval not null);
		insert into clock_ahead values ('0');
		grant select on clock_ahead to proofline_server;
		create function clock_timestamp() returns timestamptz volatile language sql as
			'select pg_catalog.clock_timestamp() + ahead from clock_ahead';
		create function now() returns timestamptz stable language sql as
			'select pg_catalog.now() + ahead from clock_ahead'`)
	path := regexp.MustCompile(`search_path=\w+`).FindString(own)
	c.URL = strings.Replace(own, path, path+",pg_catalog", 1)
	return c
}

// Pass lets time pass; below 0 the clock goes back. Servers learn of it a little
// later.
func (c *Clock) Pass(by time.Duration) {
	c.t.Helper()
	c.Ahead += by
	c.exec(fmt.Sprintf(`update clock_ahead set ahead = make_interval(secs => %f)`, c.Ahead.Seconds()))
}

func (c *Clock) exec(statements string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := exec(ctx, c.URL, statements); err != nil {
		c.t.Fatalf("pgtest: %v", err)
	}
}
