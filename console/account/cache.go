package account

import (
	"sync"
	"time"
)

const (
	cached        = 5 * time.Second // that a cache is believed
	cachePause    = time.Second     // until a cache that could not be read is read again
	cachePatience = time.Second     // that a request waits for a database that does not answer
)

// cache holds all rows of something small that every request asks for.
type cache[K comparable, V any] struct {
	reading sync.Mutex // held by the request that reads the rows anew
	mu      sync.Mutex // guards what is below
	rows    map[K]V
	until   time.Time // believed before
	changes int       // how often the rows were forgotten
}

// get returns the rows. When they are old, one request reads them anew; the
// others, and all while the database is away, get the old ones.
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
			c.until = now().Add(cached)
		}
	case rows == nil:
		return nil, err
	default:
		c.until = now().Add(cachePause)
	}
	return c.rows, nil
}

func (c *cache[K, V]) peek(now time.Time) (rows map[K]V, fresh bool, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows, now.Before(c.until), c.changes
}

// forget makes the next request read the rows anew, and wait for them.
func (c *cache[K, V]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows, c.until, c.changes = nil, time.Time{}, c.changes+1
}
