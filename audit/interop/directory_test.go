package interop

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// limit is the time limit for one reader with one log.
const limit = time.Minute

// TestRead reads scripted rooms with every reader, from a directory and from a
// plain file server.
func TestRead(t *testing.T) {
	for _, size := range sizes {
		entries := scripted(t, size)
		dir := t.TempDir()
		write(t, publish(t, entries), dir)
		places := map[string]published{"directory": inDirectory(t, dir), "HTTP": overHTTP(t, dir)}
		for place, log := range places {
			for _, r := range readers {
				t.Run(fmt.Sprintf("%d/%s/%s", size, place, r.name), func(t *testing.T) {
					got := readAll(t, r, log)
					if !slices.EqualFunc(got, entries, bytes.Equal) {
						t.Errorf("%s read other entries than were written", r.name)
					}
				})
			}
		}
	}
}

// readAll reads a log that is expected to be good.
func readAll(t *testing.T, r reader, log published) [][]byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	entries, err := r.read(ctx, log)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return entries
}
