package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
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
// nodes got.
func (r *Room) gatherEvidence(ctx context.Context, rounds Rounds) {
	asked := map[uint64]bool{}
	every(ctx, attendEvery, func(ctx context.Context) {
		pending := r.durablePending()
		r.evidence.forget(pending)
		for _, p := range pending {
			if err := r.evidence.read(ctx, p, r.policy); err != nil && ctx.Err() == nil {
				r.log.Warn("evidence cannot be read", "room", r.Slug, "err", err)
				return
			}
			if lacking, _ := r.evidence.lacks(p, r.policy); lacking && rounds != nil && !asked[p.Round] {
				asked[p.Round] = true
				go r.awaitRound(ctx, rounds, p.Round)
			}
		}
		if len(pending) == 0 {
			clear(asked)
		}
	})
}

// read takes what is stored of the evidence that is lacking.
func (e *evidence) read(ctx context.Context, p fairness.Pending, policy *fairness.Policy) error {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	round, cosignature := e.lacks(p, policy)
	if round {
		signature, err := e.store.Round(ctx, policy.Beacon.Hash(), p.Round)
		if err != nil {
			return err
		}
		if signature != nil {
			e.takeRound(p.Round, signature)
		}
	}
	if !cosignature {
		return nil
	}
	by, err := e.store.Cosignatures(ctx, e.room, p.Size)
	for w, c := range by {
		e.takeCosignature(p.Size, w, c)
	}
	return err
}

// awaitRound waits for a round, however long that takes.
func (r *Room) awaitRound(ctx context.Context, rounds Rounds, round uint64) {
	signature, err := rounds.Wait(ctx, round)
	if err == nil {
		err = r.TakeRound(ctx, round, signature)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Error("beacon round cannot be had", "room", r.Slug, "round", round, "err", err)
	}
}

// TakeRound takes a round of the room's beacon from anybody, for it proves
// itself. Errors: [ErrRound], when no draw waits for it or it does not verify.
func (r *Room) TakeRound(ctx context.Context, round uint64, signature []byte) error {
	b := r.policy.Beacon
	waits := func(p fairness.Pending) bool { return p.Round == round }
	if b == nil || !slices.ContainsFunc(r.durablePending(), waits) {
		return fmt.Errorf("%w: no draw waits for round %d", ErrRound, round)
	}
	if err := b.Verify(round, signature); err != nil {
		return fmt.Errorf("%w: %w", ErrRound, err)
	}
	r.evidence.takeRound(round, slices.Clone(signature))
	r.queue.duties()
	return r.evidence.store.AddRound(ctx, b.Hash(), round, signature)
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
		if time.Now().Before(s.rests) {
			return
		}
		answered, err := s.submit(ctx)
		switch {
		case err == nil && !answered: // there was nothing to ask, so nothing is known
		case err == nil:
			if s.fails > 0 {
				s.room.log.Info("witness cosigns again", "room", s.room.Slug, "witness", s.key.Name())
			}
			s.fails = 0
		case ctx.Err() == nil:
			if s.fails++; s.fails == 1 {
				s.room.log.Warn("witness does not cosign", "room", s.room.Slug, "witness", s.key.Name(), "err", err)
			}
			s.rests = time.Now().Add(min(witnessRest<<min(s.fails-1, 10), witnessLongRest))
		}
	})
}

// submit asks for what is most urgent: the first freeze that can still be
// cosigned before its round, else the published checkpoint. A size is never
// skipped that a draw waits for, so that all nodes ask for the same. Without
// an error it tells whether the witness was asked, and answered.
func (s *submitter) submit(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessPatience)
	defer cancel()
	r := s.room
	now := fromTime(r.Now())
	for _, p := range r.durablePending() {
		if p.Size <= s.seen || now >= p.Due || r.evidence.hasCosigned(p.Size, s.vkey) {
			continue
		}
		c, err := s.ask(ctx, p.Size)
		if err != nil || s.seen != p.Size {
			return err == nil, err
		}
		r.evidence.takeCosignature(p.Size, s.vkey, fairness.Cosignature(c))
		r.queue.duties()
		if err := r.evidence.store.AddCosignature(ctx, r.ID, p.Size, s.vkey, c); err != nil {
			return true, err
		}
		return true, r.store.Cosign(ctx, r.ID, p.Size, c.Line(s.key.Name()))
	}
	if time.Since(s.asked) < witnessEvery {
		return false, nil
	}
	s.asked = time.Now()
	size, err := r.publishedSize(ctx)
	if err != nil || size <= s.seen {
		return false, err
	}
	c, err := s.ask(ctx, size)
	if err != nil || s.seen != size {
		return err == nil, err
	}
	return true, r.store.Cosign(ctx, r.ID, size, c.Line(s.key.Name()))
}

// ask submits the checkpoint of a size. Without an error seen tells whether the
// witness cosigned it, or has a larger one.
func (s *submitter) ask(ctx context.Context, size uint64) (c audit.Cosignature, err error) {
	r := s.room
	for range 2 { // the second time with the size that the witness has
		root, proof, err := r.store.Growth(ctx, r.ID, s.seen, size)
		if err != nil {
			return c, err
		}
		signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: r.Origin, Size: size, Root: root}, r.keys.log)
		if err != nil {
			return c, err
		}
		c, err = s.cosigner.AddCheckpoint(ctx, s.seen, proof, signed)
		conflict, isConflict := errors.AsType[*witness.ConflictError](err)
		if err == nil {
			s.seen = size
		}
		if !isConflict {
			return c, err
		}
		if conflict.Size == s.seen {
			return c, err // it has another checkpoint of that size
		}
		if s.seen = conflict.Size; s.seen > size {
			return c, nil
		}
	}
	return c, nil
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
