package room

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
)

const (
	// attendEvery is how often a room with a beacon looks for missing evidence.
	attendEvery = 200 * time.Millisecond
	// witnessEvery is how often a witness is asked to cosign a published checkpoint that has grown. Freezes
	// go first.
	witnessEvery = 2 * time.Second
	// witnessPatience limits one request to a witness: a freeze does not wait long.
	witnessPatience = 5 * time.Second
	// witnessRest is the pause after a witness's first failure. It doubles with each further failure, up to
	// witnessLongRest.
	witnessRest     = 500 * time.Millisecond
	witnessLongRest = 10 * time.Second
	// gatherMost is the number of draws for which evidence is gathered at once.
	gatherMost = 16
	// awaitAgain is the pause before a round that could not be fetched is requested again.
	awaitAgain = 15 * time.Second
	// strangerPatience is how long a round sent by anyone waits to be verified, and strangerRest is the pause
	// after one that does not verify. Verifying takes 3 ms, so a flood of rounds uses a quarter of a core.
	strangerPatience = time.Second
	strangerRest     = 10 * time.Millisecond
)

// attend gathers the evidence of a room with a beacon until the room stops or ctx ends. The beacon and each
// witness have a goroutine of their own, so that a slow one does not delay the others.
func (r *Room) attend(ctx context.Context, o *Options) {
	if r.policy.Beacon == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-r.done
		cancel()
	}()
	chain := r.policy.Beacon.Hash()
	var rounds Rounds
	if at := slices.IndexFunc(o.Chains, func(c Chain) bool { return c.Hash() == chain }); at >= 0 {
		rounds = o.Chains[at].Rounds
	} else {
		r.log.Error("room waits for a beacon that no relay is configured for", "room", r.Slug,
			"beacon", fmt.Sprintf("%x", chain))
	}
	go r.gatherEvidence(ctx, rounds)
	for _, key := range r.policy.Witnesses {
		at := slices.IndexFunc(o.Witnesses, func(w Witness) bool { return w.Key.String() == key })
		if at < 0 {
			r.log.Error("room names a witness that is not configured", "room", r.Slug, "witness", key)
			continue
		}
		go (&submitter{room: r, key: o.Witnesses[at].Key, vkey: key, cosigner: o.Witnesses[at].Cosigner}).run(ctx)
	}
}

// durablePending returns the pending draws whose freezes are durable.
func (r *Room) durablePending() []fairness.Pending {
	r.mu.RLock()
	defer r.mu.RUnlock()
	pending := r.live.Pending()
	for i, p := range pending {
		if p.Size > r.stored {
			return pending[:i]
		}
	}
	return pending
}

// gatherEvidence fetches the rounds of pending draws, and reads the evidence that other nodes stored. After
// an outage many draws may be pending: they are drawn in order, and so the earliest rounds are fetched first.
func (r *Room) gatherEvidence(ctx context.Context, rounds Rounds) {
	var mu sync.Mutex
	awaited := map[uint64]bool{} // guarded by mu
	every(ctx, attendEvery, func(ctx context.Context) {
		pending := r.durablePending()
		r.evidence.forget(pending)
		pending = pending[:min(len(pending), gatherMost)]
		if err := r.readEvidence(ctx, pending); err != nil && ctx.Err() == nil {
			r.log.Warn("evidence cannot be read", "room", r.Slug, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, p := range pending {
			if rounds == nil || awaited[p.Round] || r.evidence.round(p.Round) != nil {
				continue
			}
			awaited[p.Round] = true
			go func() {
				r.awaitRound(ctx, rounds, p.Round)
				mu.Lock()
				defer mu.Unlock()
				delete(awaited, p.Round)
			}()
		}
	})
}

// readEvidence reads missing evidence from the database, cosignatures before rounds, because a draw may go
// ahead as soon as its round is known.
func (r *Room) readEvidence(ctx context.Context, pending []fairness.Pending) error {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	var rounds, sizes []uint64
	for _, p := range pending {
		round, cosignature := r.evidence.lacks(p, r.policy)
		if round {
			rounds = append(rounds, p.Round)
		}
		if cosignature {
			sizes = append(sizes, p.Size)
		}
	}
	if len(sizes) > 0 {
		by, err := r.evidence.store.Cosignatures(ctx, r.ID, sizes)
		if err != nil {
			return err
		}
		r.evidence.take(by)
	}
	r.evidence.look(pending)
	if len(rounds) == 0 {
		return nil
	}
	signatures, err := r.evidence.store.Rounds(ctx, r.policy.Beacon.Hash(), rounds)
	for round, signature := range signatures {
		if err := r.policy.Beacon.Verify(round, signature); err != nil {
			r.log.Error("stored beacon round does not verify", "room", r.Slug, "round", round, "err", err)
			continue // the relays have the right one
		}
		r.evidence.takeRound(round, signature)
	}
	return err
}

// awaitRound fetches a round, however long that takes.
func (r *Room) awaitRound(ctx context.Context, rounds Rounds, round uint64) {
	signature, err := rounds.Wait(ctx, round)
	if err == nil {
		err = r.policy.Beacon.Verify(round, signature)
	}
	if err == nil {
		err = r.keepRound(ctx, round, signature)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Error("cannot fetch beacon round", "room", r.Slug, "round", round, "err", err)
		sleep(ctx, awaitAgain)
	}
}

// TakeRound accepts a round of the room's beacon from anyone, because a round proves itself. Errors:
// [ErrRound] when no draw waits for it or it does not verify, [ErrBusy] when too many rounds arrive to verify
// them all, and those of the database.
func (r *Room) TakeRound(ctx context.Context, round uint64, signature []byte) error {
	b := r.policy.Beacon
	waits := func(p fairness.Pending) bool { return p.Round == round }
	if b == nil || !slices.ContainsFunc(r.durablePending(), waits) {
		return fmt.Errorf("%w: no draw waits for round %d", ErrRound, round)
	}
	known := r.evidence.round(round)
	switch {
	case bytes.Equal(known, signature) && known != nil:
		return nil
	case known != nil || len(signature) != beacon.SignatureSize: // a round has one signature
		return fmt.Errorf("%w: %w", ErrRound, beacon.ErrSignature)
	}
	if err := r.strangers.check(ctx, func() error { return b.Verify(round, signature) }); err != nil {
		return err
	}
	return r.keepRound(ctx, round, slices.Clone(signature))
}

// keepRound keeps a verified round for the draw, and stores it for other nodes.
func (r *Room) keepRound(ctx context.Context, round uint64, signature []byte) error {
	r.evidence.takeRound(round, signature)
	r.queue.duties()
	return r.evidence.store.AddRound(ctx, r.policy.Beacon.Hash(), round, signature)
}

// strangers limits the cost of verifying rounds that anyone may send: it verifies one at a time, and pauses
// after one that is wrong.
type strangers struct{ turn chan struct{} }

func newStrangers() strangers { return strangers{make(chan struct{}, 1)} }

// check verifies a round when its turn comes. Errors: [ErrRound] and [ErrBusy].
func (s strangers) check(ctx context.Context, verify func() error) error {
	ctx, cancel := context.WithTimeout(ctx, strangerPatience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ErrBusy
	}
	if err := verify(); err != nil {
		time.AfterFunc(strangerRest, func() { <-s.turn })
		return fmt.Errorf("%w: %w", ErrRound, err)
	}
	<-s.turn
	return nil
}

// submitter submits checkpoints of one room to one witness.
type submitter struct {
	room     *Room
	key      audit.Witness
	vkey     string
	cosigner Cosigner

	seen  uint64    // size of the witness's checkpoint, as far as known
	asked time.Time // when the published checkpoint was last submitted
	rests time.Time // end of the pause after a failure
	fails int
}

func (s *submitter) run(ctx context.Context) {
	every(ctx, attendEvery, func(ctx context.Context) {
		// Several freezes may be pending, so continue as long as the witness answers.
		for on := true; on && ctx.Err() == nil && !time.Now().Before(s.rests); {
			answered, err := s.submit(ctx)
			on = answered && err == nil
			s.note(ctx, answered, err)
		}
	})
}

// note logs when the witness begins or stops to fail, and starts the pause after a failure.
func (s *submitter) note(ctx context.Context, answered bool, err error) {
	switch {
	case err == nil && !answered: // nothing was submitted, so nothing is known
	case err == nil:
		if s.fails > 0 {
			s.room.log.Info("witness cosigns again", "room", s.room.Slug, "witness", s.key.Name())
		}
		s.fails = 0
	case ctx.Err() == nil:
		s.room.forks.note(s.key.Name(), s.room.clock.Now(), err)
		s.hold(ctx, err)
		if s.fails++; s.fails == 1 {
			s.room.log.Warn("witness does not cosign", "room", s.room.Slug, "witness", s.key.Name(), "err", err)
		}
		s.rests = time.Now().Add(min(witnessRest<<min(s.fails-1, 10), witnessLongRest))
	}
}

// submit submits the most urgent checkpoint: that of the first freeze that can still be cosigned before its
// round, else the published one. A size that a draw waits for is never skipped, so that all nodes submit the
// same ones: a published checkpoint waits until this node has read all of it, because it may contain a
// freeze. answered reports, if there is no error, whether the witness was asked and answered.
func (s *submitter) submit(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessPatience)
	defer cancel()
	r := s.room
	if r.regression.Load() != nil {
		return false, nil // a held room signs nothing
	}
	published := uint64(0)
	if time.Since(s.asked) >= witnessEvery {
		s.asked = time.Now()
		if published, err = r.publishedSize(ctx); err != nil {
			return false, err
		}
	}
	isKnown := published <= r.durableSize() // before its freezes are checked
	now := fromTime(r.Now())
	for _, p := range r.durablePending() {
		if p.Size <= s.seen || now >= p.Due || r.evidence.hasCosigned(p, s.vkey, false) {
			continue
		}
		return s.submitFreeze(ctx, p)
	}
	if published <= s.seen || !isKnown {
		return false, nil
	}
	c, err := s.ask(ctx, published)
	if err != nil || s.seen != published {
		return err == nil, err
	}
	return true, r.store.Cosign(ctx, r.ID, published, c.Line(s.key.Name()))
}

// submitFreeze submits the checkpoint that ends with a freeze.
func (s *submitter) submitFreeze(ctx context.Context, p fairness.Pending) (answered bool, err error) {
	c, err := s.ask(ctx, p.Size)
	if err != nil || s.seen != p.Size {
		return err == nil, err
	}
	r := s.room
	r.evidence.takeCosignature(p.Size, s.vkey, fairness.Cosignature(c))
	r.queue.duties()
	if err := r.evidence.store.AddCosignature(ctx, r.ID, p.Size, s.vkey, c); err != nil {
		return true, err
	}
	if !inTime(fairness.Cosignature(c), p) {
		r.log.Warn("witness cosigned too late to count", "room", r.Slug, "witness", s.key.Name(),
			"window", p.Window, "time", c.Time())
	}
	return true, r.store.Cosign(ctx, r.ID, p.Size, c.Line(s.key.Name()))
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
			return c, nil
		case !isConflict, conflict.Size == s.seen: // the witness has another checkpoint of that size
			return c, err
		case conflict.Size > size:
			return c, s.outrun(ctx, conflict)
		}
		s.seen = conflict.Size
	}
	return c, conflict // the witness's size keeps changing
}

// offer sends the checkpoint of a size to a witness that is believed to have the one of size old.
func (s *submitter) offer(ctx context.Context, old, size uint64) (none audit.Cosignature, err error) {
	r := s.room
	root, proof, err := r.store.Growth(ctx, r.ID, old, size)
	if err != nil {
		return none, err
	}
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: r.Origin, Size: size, Root: root}, r.keys.Log)
	if err != nil {
		return none, err
	}
	return s.cosigner.AddCheckpoint(ctx, old, proof, signed)
}

// outrun accepts that the witness has a larger checkpoint, unless the log was never that large: then it
// returns [errOutgrown].
func (s *submitter) outrun(ctx context.Context, conflict *witness.ConflictError) error {
	has, hold, err := s.room.store.State(ctx, s.room.ID) // this node may be behind the others
	switch {
	case err != nil:
		return err
	case conflict.Size > has.Size && conflict.Size > hold.Ignore:
		return fmt.Errorf("%w: %w", errOutgrown, conflict)
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
	case errors.Is(err, errOutgrown) && errors.As(err, &conflict):
		had = pglog.Mark{Size: conflict.Size}
	case !errors.Is(err, witness.ErrInconsistent):
		return
	}
	r := s.room
	has, hold, err := r.store.State(ctx, r.ID)
	if err != nil || had.Size <= hold.Ignore {
		return
	}
	_ = r.regress(ctx, Regression{Has: has, Had: had, By: witnessPrefix + s.key.Name()}) // logged
}

// durableSize returns the number of entries that this node knows to be stored.
func (r *Room) durableSize() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.stored
}

// publishedSize returns the size of the published checkpoint; 0: none.
func (r *Room) publishedSize(ctx context.Context) (uint64, error) {
	signed, err := r.store.Checkpoint(ctx, r.ID)
	if errors.Is(err, pglog.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	c, err := audit.ParseCheckpoint(text + "\n")
	return c.Size, err
}
