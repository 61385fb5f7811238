package pglog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/proofline/proofline/audit"
)

const (
	// readAhead is how many chunks are read and hashed before the entries of the first are applied.
	readAhead = 16
	// tileLevel is the level of a tile's root in the tree.
	tileLevel = 8
)

// chunk holds consecutive entries of one tile.
type chunk struct {
	text    []byte // all entries
	ends    []int  // end of each entry in text
	entries [][]byte
	leaves  []audit.Hash
	root    audit.Hash // root of the tile, if the chunk is the whole tile
}

func (c *chunk) add(entry []byte) {
	c.text = append(c.text, entry...)
	c.ends = append(c.ends, len(c.text))
	c.leaves = append(c.leaves, audit.LeafHash(entry))
}

// isTile reports whether the chunk has all entries of its tile.
func (c *chunk) isTile() bool { return len(c.leaves) == audit.TileWidth }

// hash computes the root of a full tile.
func (c *chunk) hash() {
	if !c.isTile() {
		return
	}
	var t audit.Tree
	for _, leaf := range c.leaves {
		t.Append(leaf)
	}
	c.root = t.Root()
}

func (c *chunk) reset() { c.text, c.ends, c.leaves = c.text[:0], c.ends[:0], c.leaves[:0] }

// errStopped ends a read whose entries are no longer needed.
var errStopped = errors.New("stopped")

// readEntries reads the entries up to index to. While they are applied, another goroutine reads and
// hashes the next ones.
func (l *Log) readEntries(ctx context.Context, from querier, to uint64, read RunReader) error {
	first := l.tree.Size()
	each := func(read func(entry []byte) error) error {
		return l.store.eachStored(ctx, from, l.room, first, to, read)
	}
	var err error
	chunks, used, stop := make(chan *chunk, readAhead), make(chan *chunk, readAhead), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(chunks)
		err = eachChunk(each, first, func(c *chunk) (*chunk, error) {
			select {
			case chunks <- c:
			case <-stop:
				return nil, errStopped
			}
			select {
			case c = <-used:
				c.reset()
				return c, nil
			default:
				return &chunk{}, nil
			}
		})
	})
	defer reader.Wait()
	defer close(stop)
	for c := range chunks {
		if err := l.apply(c, read); err != nil {
			return err
		}
		select {
		case used <- c:
		default:
		}
	}
	return err
}

// eachChunk collects the entries that each passes on, from an index on, in chunks, and passes each full one to next,
// which returns the chunk to fill next.
func eachChunk(each func(read func(entry []byte) error) error, from uint64, next func(*chunk) (*chunk, error)) error {
	c := &chunk{}
	index := from
	err := each(func(entry []byte) (err error) {
		c.add(entry)
		if index++; index%audit.TileWidth == 0 {
			c.hash()
			c, err = next(c)
		}
		return err
	})
	if err == nil && len(c.ends) > 0 {
		_, err = next(c)
	}
	return err
}

// apply passes the entries of a chunk to read, and adds them to the tree: a tile at once, unless read
// asks for a root before its end.
func (l *Log) apply(c *chunk, read RunReader) error {
	defer l.hash()
	c.entries = c.entries[:0]
	begin := 0
	for _, end := range c.ends {
		c.entries = append(c.entries, c.text[begin:end])
		begin = end
	}
	applied := 0
	err := read(c.entries, func() {
		l.leaves = append(l.leaves, c.leaves[applied])
		applied++
	})
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", ErrCorrupt, l.Size(), err)
	}
	if len(l.leaves) < audit.TileWidth {
		return nil
	}
	l.leaves = l.leaves[:0]
	return l.tree.AppendSubtree(tileLevel, c.root)
}

// hash adds the leaves that the tree does not have yet.
func (l *Log) hash() {
	for _, leaf := range l.leaves {
		l.tree.Append(leaf)
	}
	l.leaves = l.leaves[:0]
}
