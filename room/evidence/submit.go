package evidence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/internal/traces"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/regression"
)

const (
	// witnessInterval is how often a witness is asked to cosign a published checkpoint that has grown. Freezes
	// go first.
	witnessInterval = 2 * time.Second
	// witnessTimeout limits one request to a witness: a freeze does not wait long.
	witnessTimeout = 5 * time.Second
	// minWitnessRest is the pause after a witness's first failure. The pause doubles with each further failure, up to
	// maxWitnessRest.
	minWitnessRest = 500 * time.Millisecond
	maxWitnessRest = 10 * time.Second
)

// Logs are the logs of all rooms.
type Logs interface {
	// Growth returns the root of a log at a size, and the proof that it continues the log of the old size.
	Growth(ctx context.Context, room uuid.UUID, old, size uint64) (audit.Hash, []audit.Hash, error)
	// State returns the size and root of a log, and whether it is held.
	State(ctx context.Context, room uuid.UUID) (pglog.Mark, pglog.Hold, error)
	// Cosign stores a cosignature line of the published checkpoint, if that has the size.
	Cosign(ctx context.Context, room uuid.UUID, size uint64, line string) error
}

// Holder holds a room when a witness has seen another history.
type Holder interface {
	Regression() *regression.Regression
	Hold(ctx context.Context, r regression.Regression) error
}

// Target is the room whose checkpoints witnesses cosign.
type Target struct {
	ID     uuid.UUID
	Slug   string
	Origin string
	Signer note.Signer // signs checkpoints
	// IsImported reports whether the log is that of a room that another server has ended: nothing is collected for it.
	IsImported bool
	Logs       Logs
	Holder     Holder
	Forks      *Forks
	Meter      *meter.Meter
	Tracer     *traces.Tracer
	Log        *slog.Logger
	Now        func() time.Time // never before the latest entry
}

// submitter submits checkpoints of one room to one witness.
type submitter struct {
	room     *Target
	key      audit.Witness
	vkey     string
	cosigner Cosigner

	seen  uint64    // size of the witness's checkpoint, as far as known
	asked time.Time // when the published checkpoint was last submitted
	rests time.Time // end of the pause after a failure
	fails int
}

func newSubmitter(t *Target, w Witness) *submitter {
	return &submitter{room: t, key: w.Key, vkey: w.Key.String(), cosigner: w.Cosigner}
}

// Cosign submits the published checkpoints of a log that needs no other evidence to witnesses, until ctx ends.
// published returns the size of the published checkpoint, which this node has read; 0: none.
func Cosign(ctx context.Context, t *Target, witnesses []Witness, published func(context.Context) (uint64, error)) {
	var all sync.WaitGroup
	for _, w := range witnesses {
		s := newSubmitter(t, w)
		all.Go(func() {
			timing.Every(ctx, witnessInterval, func(ctx context.Context) {
				if time.Now().Before(s.rests) {
					return
				}
				bounded, cancel := context.WithTimeout(ctx, witnessTimeout)
				defer cancel()
				size, err := published(bounded)
				answered := false
				if err == nil && size > s.seen && t.Holder.Regression() == nil { // a held log signs nothing
					answered, err = s.submitPublished(bounded, size)
				}
				s.note(ctx, answered, err)
			})
		})
	}
	all.Wait()
}

// submitPublished submits the published checkpoint, and adds the cosignature to it. answered reports, if there is
// no error, whether the witness answered.
func (s *submitter) submitPublished(ctx context.Context, size uint64) (answered bool, err error) {
	signed, err := s.ask(ctx, size)
	if err != nil || s.seen != size {
		return err == nil, err
	}
	return true, s.room.Logs.Cosign(ctx, s.room.ID, size, signed.Line(s.key.Name()))
}

// note logs when the witness starts or stops failing, and begins the pause after a failure.
func (s *submitter) note(ctx context.Context, answered bool, err error) {
	switch {
	case err == nil && !answered: // nothing was submitted, so nothing is known
	case err == nil:
		if s.fails > 0 {
			s.room.Log.Info("witness cosigns again", "room", s.room.Slug, "witness", s.key.Name())
		}
		s.fails = 0
	case ctx.Err() == nil:
		s.room.Meter.Failed(s.key.Name())
		s.room.Forks.note(s.key.Name(), s.room.Now(), err)
		s.hold(ctx, err)
		if s.fails++; s.fails == 1 {
			s.room.Log.Warn("witness does not cosign", "room", s.room.Slug, "witness", s.key.Name(), "err", err)
		}
		s.rests = time.Now().Add(min(minWitnessRest<<min(s.fails-1, 10), maxWitnessRest))
	}
}

// ask submits the checkpoint of a size. If there is no error, s.seen is the size that the witness has: this
// one, which it cosigned, or a larger one.
func (s *submitter) ask(ctx context.Context, size uint64) (c audit.Cosignature, err error) {
	conflict := (*witness.ConflictError)(nil)
	for range 3 { // retry with the witness's size, which other nodes may have increased meanwhile
		c, err = s.offer(ctx, s.seen, size)
		isConflict := errors.As(err, &conflict)
		switch {
		case err == nil:
			s.seen = size
			s.room.Meter.Cosigned(s.key.Name(), time.Unix(c.Time(), 0).Sub(s.room.Now().Truncate(time.Second)))
			return c, nil
		case !isConflict, conflict.Size == s.seen: // the witness has a different checkpoint of that size
			return c, err
		case conflict.Size > size:
			return c, s.acceptLarger(ctx, conflict)
		}
		s.seen = conflict.Size
	}
	return c, conflict // the witness's size keeps changing
}

// offer sends the checkpoint of a size to a witness that is believed to have one of size old.
func (s *submitter) offer(ctx context.Context, old, size uint64) (none audit.Cosignature, err error) {
	r := s.room
	root, proof, err := r.Logs.Growth(ctx, r.ID, old, size)
	if err != nil {
		return none, err
	}
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: r.Origin, Size: size, Root: root}, r.Signer)
	if err != nil {
		return none, err
	}
	ctx, span := r.Tracer.Call(ctx, "ask a witness", attribute.String("proofline.room", r.Slug),
		attribute.String("proofline.witness", s.key.Name()), attribute.Int64("proofline.size", int64(size)))
	c, err := s.cosigner.AddCheckpoint(ctx, old, proof, signed)
	traces.End(span, err == nil)
	return c, err
}

// acceptLarger accepts that the witness has a larger checkpoint, unless the log was never that large: then it
// returns [errNeverThatLarge].
func (s *submitter) acceptLarger(ctx context.Context, conflict *witness.ConflictError) error {
	has, hold, err := s.room.Logs.State(ctx, s.room.ID) // this node may be behind the others
	switch {
	case err != nil:
		return err
	case conflict.Size > has.Size && conflict.Size > hold.Ignore:
		return fmt.Errorf("%w: %w", errNeverThatLarge, conflict)
	}
	s.seen = conflict.Size
	return nil
}

// hold holds the room if the witness's error shows that it has seen another log, unless the operator has
// overruled it.
func (s *submitter) hold(ctx context.Context, err error) {
	had := pglog.Mark{Size: max(s.seen, 1), Root: pglog.OtherRoot}
	conflict := (*witness.ConflictError)(nil)
	switch {
	case errors.Is(err, errNeverThatLarge) && errors.As(err, &conflict):
		had = pglog.Mark{Size: conflict.Size}
	case !errors.Is(err, witness.ErrInconsistent):
		return
	}
	r := s.room
	has, hold, err := r.Logs.State(ctx, r.ID)
	if err != nil || had.Size <= hold.Ignore {
		return
	}
	by := regression.WitnessPrefix + s.key.Name()
	_ = r.Holder.Hold(ctx, regression.Regression{Has: has, Had: had, By: by}) // Hold has logged the error
}
