package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

const watchInterval = 200 * time.Millisecond

// watcher reads the checkpoints that the nodes publish, all the time.
type watcher struct {
	key    note.Verifier
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	seen history
}

func startWatcher(ctx context.Context, key note.Verifier, urls []string) *watcher {
	w := &watcher{key: key, seen: history{}}
	ctx, w.cancel = context.WithCancel(ctx)
	for _, url := range urls {
		w.done.Go(func() {
			for ctx.Err() == nil {
				w.look(ctx, url)
				select {
				case <-time.After(watchInterval):
				case <-ctx.Done():
				}
			}
		})
	}
	return w
}

func (w *watcher) look(ctx context.Context, url string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the node is away
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return
	}
	c, _, err := audit.OpenCheckpoint(text, w.key)
	if err != nil {
		return // not signed by the room
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.add(c)
}

func (w *watcher) stop() history {
	w.cancel()
	w.done.Wait()
	return w.seen
}

// history is the signed checkpoints of a log, as roots by size.
type history map[uint64]map[audit.Hash]bool

func (h history) add(c audit.Checkpoint) {
	if h[c.Size] == nil {
		h[c.Size] = map[audit.Hash]bool{}
	}
	h[c.Size][c.Root] = true
}

// others returns the number of signed checkpoints that the log with these entries never had: each is
// of a second history, or of one that was lost.
func (h history) others(entries [][]byte) (n int, err error) {
	var hashes []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, at := range indexes {
			list[i] = hashes[at]
		}
		return list, nil
	})
	for i, entry := range entries {
		more, err := tlog.StoredHashes(int64(i), entry, read)
		if err != nil {
			return 0, err
		}
		hashes = append(hashes, more...)
	}
	for size, roots := range h {
		var root audit.Hash
		if size <= uint64(len(entries)) {
			if root, err = tlog.TreeHash(int64(size), read); err != nil { //nolint:gosec // at most the number of entries
				return 0, err
			}
		}
		for signed := range roots {
			if size > uint64(len(entries)) || signed != root {
				n++
			}
		}
	}
	return n, nil
}
