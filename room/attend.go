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
	// attendEvery is how often a room with a beacon looks for evidence that it
	// lacks.
	attendEvery = 200 * time.Millisecond
	// witnessEvery is how often a witness is asked to cosign the published
	// checkpoint, as long as that grows. Freezes go first.
	witnessEvery = 2 * time.Second
	// witnessPatience is how long one request to a witness may take. A freeze
	// does not wait long.
	witnessPatience = 5 * time.Second
	// witnessRest is how long a witness that fails is left alone, the first
	// time; then twice as long, up to witnessLongRest.
	witnessRest     = 500 * time.Millisecond
	witnessLongRest = 10 * time.Second
	// gatherMost is for how many draws at most evidence is looked for at once.
	gatherMost = 16
	// awaitAgain is when a round is asked for again that could not be had.
	awaitAgain = 15 * time.Second
	// strangerPatience is how long a round that somebody sends waits to be
	// verified, and strangerRest how long the next one waits after a wrong one.
	// To verify takes 3 ms, so a flood of them takes a quarter of a core.
	strangerPatience = time.Second
	strangerRest     = 10 * time.Millisecond
)

// attend looks after the evidence of a room with a beacon, until the room stops
// or ctx ends: one goroutine for the beacon, and one for each witness, so that
// one that is slow holds up nobody.
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
		r.log.Error("room waits for a beacon that no relay is configured for", "room", r.Slug, "beacon", fmt.Sprintf("%x", chain))
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

// durablePending returns the pending draws whose freezes are stored.
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

// gatherEvidence gets the rounds that are waited for, and takes what other
// nodes got. After an outage many draws may wait: they go in order, and so do
// their rounds.
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

// readEvidence takes what is stored of the evidence that is lacking: the
// cosignatures before the rounds, with which a draw may go on.
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
			r.log.Error("stored beacon round is none", "room", r.Slug, "round", round, "err", err)
			continue // the relays have it
		}
		r.evidence.takeRound(round, signature)
	}
	return err
}

// awaitRound waits for a round, however long that takes.
func (r *Room) awaitRound(ctx context.Context, rounds Rounds, round uint64) {
	signature, err := rounds.Wait(ctx, round)
	if err == nil {
		err = r.policy.Beacon.Verify(round, signature)
	}
	if err == nil {
		err = r.keepRound(ctx, round, signature)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Error("beacon round cannot be had", "room", r.Slug, "round", round, "err", err)
		sleep(ctx, awaitAgain)
	}
}

// TakeRound takes a round of the room's beacon from anybody, for it proves
// itself. Errors: [ErrRound], when no draw waits for it or it does not verify,
// [ErrBusy], when too many are sent to look at them all, and those of the
// database.
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

// keepRound keeps a round that was verified, for the draw and for other nodes.
func (r *Room) keepRound(ctx context.Context, round uint64, signature []byte) error {
	r.evidence.takeRound(round, signature)
	r.queue.duties()
	return r.evidence.store.AddRound(ctx, r.policy.Beacon.Hash(), round, signature)
}

// strangers bounds what the rounds that strangers send cost a node: one is
// verified at a time, and a wrong one holds up the next.
type strangers struct{ turn chan struct{} }

func newStrangers() strangers { return strangers{make(chan struct{}, 1)} }

// check verifies a round as soon as it may. Errors: [ErrRound] and [ErrBusy].
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

// submitter asks one witness of one room.
type submitter struct {
	room     *Room
	key      audit.Witness
	vkey     string
	cosigner Cosigner

	seen  uint64    // size of the checkpoint that the witness has, as far as known
	asked time.Time // for the published checkpoint
	rests time.Time // until then it is left alone
	fails int
}

func (s *submitter) run(ctx context.Context) {
	every(ctx, attendEvery, func(ctx context.Context) {
		// There may be more freezes than looks, so it goes on while it gets on.
		for on := true; on && ctx.Err() == nil && !time.Now().Before(s.rests); {
			answered, err := s.submit(ctx)
			on = answered && err == nil
			s.note(ctx, answered, err)
		}
	})
}

// note logs how the witness does, when that is news, and lets one that fails
// rest.
func (s *submitter) note(ctx context.Context, answered bool, err error) {
	switch {
	case err == nil && !answered: // there was nothing to ask, so nothing is known
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

// submit asks for what is most urgent: the first freeze that can still be
// cosigned before its round, else the published checkpoint. A size is never
// skipped that a draw waits for, so that all nodes ask for the same: a
// checkpoint is left alone as long as this node has not read all of it, for
// there may be a freeze in it. Without an error it tells whether the witness
// was asked, and answered.
func (s *submitter) submit(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessPatience)
	defer cancel()
	r := s.room
	if r.regression.Load() != nil {
		return false, nil // nothing is signed
	}
	published := uint64(0)
	if time.Since(s.asked) >= witnessEvery {
		s.asked = time.Now()
		if published, err = r.publishedSize(ctx); err != nil {
			return false, err
		}
	}
	isKnown := published <= r.durableSize() // before the freezes in it are looked at
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

// submitFreeze asks for the checkpoint that ends with a freeze.
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
		r.log.Warn("witness cosigned too late to count", "room", r.Slug, "witness", s.key.Name(), "window", p.Window, "time", c.Time())
	}
	return true, r.store.Cosign(ctx, r.ID, p.Size, c.Line(s.key.Name()))
}

// ask submits the checkpoint of a size. Without an error seen tells whether the
// witness cosigned it, or has a larger one.
func (s *submitter) ask(ctx context.Context, size uint64) (c audit.Cosignature, err error) {
	conflict := (*witness.ConflictError)(nil)
	for range 3 { // again with the size that the witness has, which other nodes may have moved on meanwhile
		c, err = s.offer(ctx, s.seen, size)
		isConflict := errors.As(err, &conflict)
		switch {
		case err == nil:
			s.seen = size
			return c, nil
		case !isConflict, conflict.Size == s.seen: // in which case it has another checkpoint of that size
			return c, err
		case conflict.Size > size:
			return c, s.outrun(ctx, conflict)
		}
		s.seen = conflict.Size
	}
	return c, conflict // it cannot decide
}

// offer sends the checkpoint of a size to a witness that is taken to have the one
// of the old size.
func (s *submitter) offer(ctx context.Context, old, size uint64) (none audit.Cosignature, err error) {
	r := s.room
	root, proof, err := r.store.Growth(ctx, r.ID, old, size)
	if err != nil {
		return none, err
	}
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: r.Origin, Size: size, Root: root}, r.keys.log)
	if err != nil {
		return none, err
	}
	return s.cosigner.AddCheckpoint(ctx, old, proof, signed)
}

// outrun takes it that the witness has a larger checkpoint, unless the log was
// never so large: then it says nothing, and is to be asked again.
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

// hold holds the room if the error of its witness says that it has seen another
// log, unless the operator has overruled it.
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

// durableSize returns how many entries this node knows to be stored.
func (r *Room) durableSize() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.stored
}

// publishedSize returns the size of the published checkpoint, 0 for none.
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
