package account

import (
	"sync"
	"time"
)

const (
	cacheLife    = 5 * time.Second // how long rows are used without reading them again
	cacheRetry   = time.Second     // pause after a failed read
	cacheTimeout = time.Second     // longest wait of a request for the database
)

// cache holds all rows of a small table that every request needs.
type cache[K comparable, V any] struct {
	reading sync.Mutex // held by the request that reads the rows
	mu      sync.Mutex // guards the fields below
	rows    map[K]V
	until   time.Time // time from which the rows are stale
	changes int       // number of calls of forget
}

// get returns the rows. When they are stale, one request reads them again; other requests, and all
// requests while the database is down, get the stale rows.
func (c *cache[K, V]) get(now func() time.Time, read func() (map[K]V, error)) (map[K]V, error) {
	rows, fresh, _ := c.peek(now())
	if fresh {
		return rows, nil
	}
	if rows == nil {
		c.reading.Lock()
	} else if !c.reading.TryLock() {
		return rows, nil
	}
	defer c.reading.Unlock()
	rows, fresh, changes := c.peek(now())
	if fresh {
		return rows, nil
	}
	next, err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.rows = next
		if changes == c.changes {
			c.until = now().Add(cacheLife)
		}
	case rows == nil:
		return nil, err
	default:
		c.until = now().Add(cacheRetry)
	}
	return c.rows, nil
}

func (c *cache[K, V]) peek(now time.Time) (rows map[K]V, fresh bool, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows, now.Before(c.until), c.changes
}

// forget makes the next request wait for the rows to be read again.
func (c *cache[K, V]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows, c.until, c.changes = nil, time.Time{}, c.changes+1
}
