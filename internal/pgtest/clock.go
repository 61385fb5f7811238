//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Clock is the clock of a schema, which a test can advance, so that hours pass instantly and no
// window closes because the machine is slow.
type Clock struct {
	URL string // URL of the schema; all connections through it use this clock

	t     testing.TB
	ahead atomic.Int64 // how far the clock is ahead of real time, in nanoseconds
}

// NewClock returns the clock of a fresh, migrated schema. The schema's functions shadow
// PostgreSQL's own.
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

// Pass advances the clock; a negative duration sets it back. Servers notice a little later.
func (c *Clock) Pass(by time.Duration) {
	c.t.Helper()
	ahead := time.Duration(c.ahead.Add(int64(by)))
	c.exec(fmt.Sprintf(`update clock_ahead set ahead = make_interval(secs => %f)`, ahead.Seconds()))
}

// Ahead returns how far the clock is ahead of real time.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Now returns the time that the clock shows. Other clocks can follow it.
func (c *Clock) Now() time.Time { return time.Now().Add(c.Ahead()) }

func (c *Clock) exec(statements string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := exec(ctx, c.URL, statements); err != nil {
		c.t.Fatalf("pgtest: %v", err)
	}
}
