package evidence

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/witness"
)

const (
	// consultTimeout limits how long witnesses may take to report what they have seen of a room.
	consultTimeout = 3 * time.Second
	// consultRest is the time for which a witness that did not answer is not asked about other rooms:
	// otherwise starting with many rooms would take very long.
	consultRest = time.Minute
)

// Witnesses asks witnesses about rooms for which this node has no mark: the node is new, or its marks were
// lost, and the database may have lost entries meanwhile. It is safe for concurrent use.
type Witnesses struct {
	witnesses []Witness

	mu     sync.Mutex           // guards silent
	silent map[string]time.Time // when a witness last failed to answer, by key
}

// NewWitnesses returns the witnesses of a server.
func NewWitnesses(list []Witness) *Witnesses { return &Witnesses{witnesses: list} }

// find returns the witness with a key. ok reports whether it is configured and may be asked.
func (q *Witnesses) find(key string) (w Witness, ok bool) {
	for _, w = range q.witnesses {
		if w.Key.String() == key {
			q.mu.Lock()
			defer q.mu.Unlock()
			return w, time.Since(q.silent[key]) >= consultRest
		}
	}
	return w, false
}

func (q *Witnesses) noteSilent(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.silent == nil {
		q.silent = map[string]time.Time{}
	}
	q.silent[key] = time.Now()
}

// Consult asks the witnesses with these keys whether they have seen more entries of a room than the size of the
// database's log, or different ones, and holds the room if one has. It does not wait for witnesses that do not
// answer.
func (q *Witnesses) Consult(ctx context.Context, t Target, keys []string, size uint64) {
	bounded, cancel := context.WithTimeout(ctx, consultTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, key := range keys {
		w, ok := q.find(key)
		if !ok {
			t.Log.Warn("cannot ask a witness about a room that is new to this server: it is not configured, or did not answer recently",
				"room", t.Slug, "witness", key)
			continue
		}
		s := newSubmitter(&t, w)
		all.Go(func() {
			err := s.compare(bounded, size)
			switch {
			case err == nil:
				t.Log.Info("witness has seen no entries that the database lacks", "room", t.Slug,
					"witness", w.Key.Name())
			case errors.Is(err, witness.ErrInconsistent) || errors.Is(err, errNeverThatLarge):
				t.Forks.note(w.Key.Name(), t.Now(), err)
				s.hold(ctx, err)
			default:
				if errors.Is(err, witness.ErrUnavailable) || bounded.Err() != nil {
					q.noteSilent(key)
				}
				t.Log.Warn("cannot compare a room that is new to this server with a witness; "+
					"the room continues with the database's log",
					"room", t.Slug, "witness", w.Key.Name(), "err", err)
			}
		})
	}
	all.Wait()
}

// compare first learns the size of the witness's checkpoint and then offers exactly that size. So the witness
// never learns of a larger one, which would keep it from cosigning an earlier freeze. If there is no error, the
// log contains all that the witness has seen.
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
			if err := s.acceptLarger(ctx, conflict); err != nil {
				return err
			}
		}
		size = conflict.Size
	}
	return conflict
}
