package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/witness"
)

const (
	// consultPatience is how long witnesses may take to say what they have seen
	// of a room.
	consultPatience = 3 * time.Second
	// consultRest is how long a witness that did not is not asked about other
	// rooms: a start with many rooms would take forever.
	consultRest = time.Minute
)

// counsel asks witnesses about rooms that this node has no mark of: it is new,
// or its marks were lost, and the database may have gone back meanwhile.
type counsel struct {
	witnesses []Witness

	mu     sync.Mutex           // guards silent
	silent map[string]time.Time // when a witness did not answer, by its key
}

// find returns the witness with a key, and whether it may be asked.
func (c *counsel) find(key string) (w Witness, ok bool) {
	for _, w = range c.witnesses {
		if w.Key.String() == key {
			c.mu.Lock()
			defer c.mu.Unlock()
			return w, time.Since(c.silent[key]) >= consultRest
		}
	}
	return w, false
}

func (c *counsel) note(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent == nil {
		c.silent = map[string]time.Time{}
	}
	c.silent[key] = time.Now()
}

// consult asks the room's witnesses whether they have seen more than the
// database has, or something else, and holds the room if one has. Witnesses that
// do not answer are not waited for.
func (r *Room) consult(ctx context.Context, l *live) error {
	if l.log.Size() == 0 || l.Ended() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, consultPatience)
	defer cancel()
	var all sync.WaitGroup
	for _, key := range l.Policy().Witnesses {
		w, ok := r.counsel.find(key)
		if !ok {
			r.log.Warn("witness is not asked what it has seen of a room that this server does not know", "room", r.Slug, "witness", key)
			continue
		}
		s := &submitter{room: r, key: w.Key, vkey: key, cosigner: w.Cosigner}
		all.Go(func() {
			err := s.compare(bounded, l.log.Size())
			switch {
			case err == nil:
				r.log.Info("witness has seen nothing of the room that the database lacks", "room", r.Slug, "witness", w.Key.Name())
			case errors.Is(err, witness.ErrInconsistent) || errors.Is(err, errOutgrown):
				r.forks.note(w.Key.Name(), r.clock.Now(), err)
				s.hold(ctx, err)
			default:
				if errors.Is(err, witness.ErrUnavailable) || bounded.Err() != nil {
					r.counsel.note(key)
				}
				r.log.Warn("witness does not say what it has seen of a room that this server does not know; the room goes on with what the database has",
					"room", r.Slug, "witness", w.Key.Name(), "err", err)
			}
		})
	}
	all.Wait()
	return r.complete()
}

// compare offers the checkpoint that the witness has, once it has said of which
// size that is: so it learns of no larger one, which would keep it from
// cosigning a freeze before that. Without an error all that the witness has seen
// is in the log.
func (s *submitter) compare(ctx context.Context, size uint64) error {
	conflict := (*witness.ConflictError)(nil)
	for range 3 { // again when other nodes have moved it on meanwhile
		s.seen = size
		_, err := s.offer(ctx, size, size)
		switch {
		case !errors.As(err, &conflict):
			return err
		case conflict.Size == 0:
			return nil // it has seen nothing
		case conflict.Size > size:
			if err := s.outrun(ctx, conflict); err != nil {
				return err
			}
		}
		size = conflict.Size
	}
	return conflict
}
