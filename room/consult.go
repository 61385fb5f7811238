package room

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/witness"
)

const (
	// consultPatience limits how long witnesses may take to say what they have seen of a room.
	consultPatience = 3 * time.Second
	// consultRest is the time for which a witness that did not answer is not asked about other rooms:
	// otherwise starting with many rooms would take very long.
	consultRest = time.Minute
)

// counsel asks witnesses about rooms for which this node has no mark: the node is new, or its marks were
// lost, and the database may have lost entries meanwhile.
type counsel struct {
	witnesses []Witness

	mu     sync.Mutex           // guards silent
	silent map[string]time.Time // when a witness last failed to answer, by key
}

// find returns the witness with a key. ok reports whether it is configured and may be asked.
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

// consult asks the room's witnesses whether they have seen more entries than the database has, or others, and
// holds the room if one has. It does not wait for witnesses that do not answer.
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
			r.log.Warn("cannot ask a witness about a room new to this server: it is not configured, or did not answer lately",
				"room", r.Slug, "witness", key)
			continue
		}
		s := &submitter{room: r, key: w.Key, vkey: key, cosigner: w.Cosigner}
		all.Go(func() {
			err := s.compare(bounded, l.log.Size())
			switch {
			case err == nil:
				r.log.Info("witness has seen no entries that the database lacks", "room", r.Slug,
					"witness", w.Key.Name())
			case errors.Is(err, witness.ErrInconsistent) || errors.Is(err, errOutgrown):
				r.forks.note(w.Key.Name(), r.clock.Now(), err)
				s.hold(ctx, err)
			default:
				if errors.Is(err, witness.ErrUnavailable) || bounded.Err() != nil {
					r.counsel.note(key)
				}
				r.log.Warn("cannot learn from a witness what it has seen of a room new to this server; "+
					"the room continues with the database's log",
					"room", r.Slug, "witness", w.Key.Name(), "err", err)
			}
		})
	}
	all.Wait()
	return r.complete()
}

// compare first learns the size of the witness's checkpoint and then offers that very size. The witness so
// never learns of a larger one, which would keep it from cosigning an earlier freeze. If there is no error,
// the log contains all that the witness has seen.
func (s *submitter) compare(ctx context.Context, size uint64) error {
	conflict := (*witness.ConflictError)(nil)
	for range 3 { // retry if other nodes have increased it meanwhile
		s.seen = size
		_, err := s.offer(ctx, size, size)
		switch {
		case !errors.As(err, &conflict):
			return err
		case conflict.Size == 0:
			return nil // the witness does not know the room
		case conflict.Size > size:
			if err := s.outrun(ctx, conflict); err != nil {
				return err
			}
		}
		size = conflict.Size
	}
	return conflict
}
