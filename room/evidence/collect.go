package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/internal/traces"
)

// ErrRound is returned for a beacon round that nothing waits for, or that does not verify.
var ErrRound = errors.New("nothing waits for this beacon round")

const (
	// collectInterval is how often a room with a beacon looks for missing evidence.
	collectInterval = 200 * time.Millisecond
	// readTimeout limits one read of stored evidence.
	readTimeout = 5 * time.Second
	// maxCollected is the number of draws for which evidence is collected at once.
	maxCollected = 16
	// retryInterval is the pause before a round that could not be fetched is requested again.
	retryInterval = 15 * time.Second
	// nearRound is how long before the round of work is due the collector starts to wait for it: the room may open in
	// weeks.
	nearRound = 10 * time.Second
)

// Store stores evidence for all nodes.
type Store interface {
	AddRound(ctx context.Context, chain [32]byte, round uint64, signature []byte) error
	Rounds(ctx context.Context, chain [32]byte, rounds []uint64) (map[uint64][]byte, error)
	AddCosignature(ctx context.Context, room uuid.UUID, size uint64, witness string, cosignature [76]byte) error
	Cosignatures(ctx context.Context, room uuid.UUID, sizes []uint64) (map[uint64]map[string][76]byte, error)
}

// View shows the durable transcript.
type View interface {
	// Pending returns the pending draws whose freezes are durable.
	Pending() []fairness.Pending
	// AwaitsWorkRound returns the beacon round that work is done for, and when it appears, until the transcript has it.
	AwaitsWorkRound() (round uint64, due fairness.Time, ok bool)
	// Size returns the number of entries.
	Size() uint64
}

// Sequencer appends to the transcript.
type Sequencer interface {
	// WakeDue makes the sequencer append the entries that are due.
	WakeDue()
	// PublishedSize returns the size of the published checkpoint; 0: none.
	PublishedSize(ctx context.Context) (uint64, error)
}

// Collector collects the evidence of one room with a beacon. Every node stores what it gets, and reads what
// others stored. It is safe for concurrent use.
type Collector struct {
	room      Target
	policy    *fairness.Policy // set by Start
	known     *Known
	store     Store
	view      View
	sequencer Sequencer
	limiter   *RoundLimiter
}

// NewCollector returns the collector of a room. Start must be called before the other methods.
func NewCollector(t Target, known *Known, store Store, view View, sequencer Sequencer,
	limiter *RoundLimiter) *Collector {
	return &Collector{room: t, known: known, store: store, view: view, sequencer: sequencer, limiter: limiter}
}

// Start collects evidence for a room with this policy from these chains and witnesses until ctx ends, if the room
// has a beacon. The beacon and each witness have separate goroutines, so that a slow one does not delay the
// others.
func (c *Collector) Start(ctx context.Context, policy *fairness.Policy, chains []Chain, witnesses []Witness) {
	c.policy = policy
	if c.policy.Beacon == nil || c.room.IsImported {
		return
	}
	chain := c.policy.Beacon.Hash()
	var rounds Rounds
	if at := slices.IndexFunc(chains, func(known Chain) bool { return known.Hash() == chain }); at >= 0 {
		rounds = chains[at].Rounds
	} else {
		c.room.Log.Error("room waits for a beacon that no relay is configured for", "room", c.room.Slug,
			"beacon", fmt.Sprintf("%x", chain))
	}
	go c.collect(ctx, rounds)
	for _, key := range c.policy.Witnesses {
		at := slices.IndexFunc(witnesses, func(w Witness) bool { return w.Key.String() == key })
		if at < 0 {
			c.room.Log.Error("room names a witness that is not configured", "room", c.room.Slug, "witness", key)
			continue
		}
		s := newSubmitter(&c.room, witnesses[at])
		go c.submitAll(ctx, s)
	}
}

// collect fetches the rounds of pending draws and of work, and reads the evidence that other nodes stored. After an
// outage many draws may be pending: they are drawn in order, and so the earliest rounds are fetched first.
func (c *Collector) collect(ctx context.Context, rounds Rounds) {
	var mu sync.Mutex
	awaited := map[uint64]bool{} // guarded by mu
	timing.Every(ctx, collectInterval, func(ctx context.Context) {
		pending, wanted := c.wanted()
		if err := c.readStored(ctx, pending, wanted); err != nil && ctx.Err() == nil {
			c.room.Log.Warn("cannot read evidence", "room", c.room.Slug, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, round := range wanted {
			if rounds == nil || awaited[round] || c.known.Round(round) != nil {
				continue
			}
			awaited[round] = true
			go func() {
				c.awaitRound(ctx, rounds, round)
				mu.Lock()
				defer mu.Unlock()
				delete(awaited, round)
			}()
		}
	})
}

// wanted returns the first pending draws, and their rounds with the one that work is done for, once that is near. It
// forgets the evidence of other draws and rounds.
func (c *Collector) wanted() (pending []fairness.Pending, rounds []uint64) {
	all := c.view.Pending()
	if work, due, ok := c.view.AwaitsWorkRound(); ok && millis.Of(c.room.Now().Add(nearRound)) >= due {
		rounds = append(rounds, work)
	}
	for _, p := range all {
		rounds = append(rounds, p.Round)
	}
	c.known.forget(all, rounds)
	n := len(rounds) - len(all) // rounds that no draw waits for
	pending = all[:min(len(all), maxCollected)]
	return pending, rounds[:n+len(pending)]
}

// readStored reads missing evidence from the database, cosignatures before rounds, because a draw may go
// ahead as soon as its round is known.
func (c *Collector) readStored(ctx context.Context, pending []fairness.Pending, wanted []uint64) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var rounds, sizes []uint64
	for _, round := range wanted {
		if c.known.Round(round) == nil {
			rounds = append(rounds, round)
		}
	}
	for _, p := range pending {
		if c.known.lacks(p, c.policy) {
			sizes = append(sizes, p.Size)
		}
	}
	if len(sizes) > 0 {
		by, err := c.store.Cosignatures(ctx, c.room.ID, sizes)
		if err != nil {
			return err
		}
		c.known.take(by)
	}
	c.known.noteRead(pending)
	if len(rounds) == 0 {
		return nil
	}
	signatures, err := c.store.Rounds(ctx, c.policy.Beacon.Hash(), rounds)
	for round, signature := range signatures {
		if err := c.policy.Beacon.Verify(round, signature); err != nil {
			c.room.Log.Error("stored beacon round does not verify", "room", c.room.Slug, "round", round, "err", err)
			continue // the relays have the correct signature
		}
		c.known.takeRound(round, signature)
	}
	return err
}

// awaitRound fetches a round, however long that takes.
func (c *Collector) awaitRound(ctx context.Context, rounds Rounds, round uint64) {
	_, span := c.room.Tracer.Call(ctx, "fetch a beacon round", attribute.String("proofline.room", c.room.Slug),
		attribute.Int64("proofline.round", int64(round)))
	signature, err := rounds.Wait(ctx, round)
	traces.End(span, err == nil)
	if err == nil {
		err = c.policy.Beacon.Verify(round, signature)
	}
	if err == nil {
		err = c.keepRound(ctx, round, signature)
	}
	if err != nil && ctx.Err() == nil {
		c.room.Log.Error("cannot fetch beacon round", "room", c.room.Slug, "round", round, "err", err)
		timing.Sleep(ctx, retryInterval)
	}
}

// TakeRound accepts a round of the room's beacon from anyone, because a round proves itself. Errors:
// [ErrRound] when nothing waits for it or it does not verify, [sequence.ErrBusy] when too many rounds arrive to
// verify them all, and those of the database.
func (c *Collector) TakeRound(ctx context.Context, round uint64, signature []byte) error {
	b := c.policy.Beacon
	waits := func(p fairness.Pending) bool { return p.Round == round }
	work, _, ok := c.view.AwaitsWorkRound()
	if b == nil || !slices.ContainsFunc(c.view.Pending(), waits) && (!ok || work != round) {
		return fmt.Errorf("%w: %d", ErrRound, round)
	}
	known := c.known.Round(round)
	switch {
	case bytes.Equal(known, signature) && known != nil:
		return nil
	case known != nil || len(signature) != beacon.SignatureSize: // a round has exactly one signature
		return fmt.Errorf("%w: %w", ErrRound, beacon.ErrSignature)
	}
	if err := c.limiter.check(ctx, func() error { return b.Verify(round, signature) }); err != nil {
		return err
	}
	return c.keepRound(ctx, round, slices.Clone(signature))
}

// keepRound keeps a verified round for the draw, and stores it for other nodes.
func (c *Collector) keepRound(ctx context.Context, round uint64, signature []byte) error {
	c.known.takeRound(round, signature)
	c.sequencer.WakeDue()
	return c.store.AddRound(ctx, c.policy.Beacon.Hash(), round, signature)
}

// Awaited is a draw that waits for evidence.
type Awaited struct {
	Window   fairness.WindowIndex
	Round    uint64    // round of the beacon; 0: none
	Due      time.Time // when the round is published
	HasRound bool      // this node has the round
	Cosigned []string  // names of the witnesses that cosigned the freeze in time
}

// Awaited returns the draws that wait for evidence, the next one first.
func (c *Collector) Awaited() []Awaited { return c.awaited(c.view.Pending()) }

// Waiting returns the number of draws that wait for a round, and the first of them, at most limit.
func (c *Collector) Waiting(limit int) (n int, first []Awaited) {
	pending := c.view.Pending()
	return len(pending), c.awaited(pending[:min(len(pending), limit)])
}

func (c *Collector) awaited(pending []fairness.Pending) (list []Awaited) {
	for _, p := range pending {
		if p.Round == 0 {
			continue // without a beacon no draw waits
		}
		hasRound := c.known.Round(p.Round) != nil
		a := Awaited{Window: p.Window, Round: p.Round, Due: millis.Time(p.Due), HasRound: hasRound}
		for _, w := range c.policy.Witnesses {
			if name, _, _ := strings.Cut(w, "+"); c.known.hasCosignedInTime(p, c.policy.Beacon, w) {
				a.Cosigned = append(a.Cosigned, name)
			}
		}
		list = append(list, a)
	}
	return list
}

// submitAll submits checkpoints to one witness until ctx ends.
func (c *Collector) submitAll(ctx context.Context, s *submitter) {
	timing.Every(ctx, collectInterval, func(ctx context.Context) {
		// Several freezes may be pending, so continue as long as the witness answers.
		for on := true; on && ctx.Err() == nil && !time.Now().Before(s.rests); {
			answered, err := c.submit(ctx, s)
			on = answered && err == nil
			s.note(ctx, answered, err)
		}
	})
}

// submit submits the most urgent checkpoint: that of the first freeze that can still be cosigned before its
// round, else the published one. A size that a draw waits for is never skipped, so that all nodes submit the
// same ones: a published checkpoint waits until this node has read all of it, because it may contain a
// freeze. answered reports, if there is no error, whether the witness was asked and answered.
func (c *Collector) submit(ctx context.Context, s *submitter) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	if c.room.Holder.Regression() != nil {
		return false, nil // a held room signs nothing
	}
	published := uint64(0)
	if time.Since(s.asked) >= witnessInterval {
		s.asked = time.Now()
		if published, err = c.sequencer.PublishedSize(ctx); err != nil {
			return false, err
		}
	}
	isKnown := published <= c.view.Size() // its freezes are checked only after that
	now := millis.Of(c.room.Now())
	for _, p := range c.view.Pending() {
		if p.Size <= s.seen || now >= p.Due-fairness.Time(fairness.Slack) || c.known.hasCosigned(p, s.vkey) {
			continue
		}
		return c.submitFreeze(ctx, s, p)
	}
	if published <= s.seen || !isKnown {
		return false, nil
	}
	return s.submitPublished(ctx, published)
}

// submitFreeze submits the checkpoint that ends with a freeze.
func (c *Collector) submitFreeze(ctx context.Context, s *submitter, p fairness.Pending) (answered bool, err error) {
	signed, err := s.ask(ctx, p.Size)
	if err != nil || s.seen != p.Size {
		return err == nil, err
	}
	c.known.takeCosignature(p.Size, s.vkey, fairness.Cosignature(signed))
	c.sequencer.WakeDue()
	if err := c.store.AddCosignature(ctx, c.room.ID, p.Size, s.vkey, signed); err != nil {
		return true, err
	}
	if !inTime(fairness.Cosignature(signed), p, c.policy.Beacon) {
		c.room.Log.Warn("cosignature does not count: its time is not between freeze and round", "room", c.room.Slug, "witness", s.key.Name(),
			"window", p.Window, "time", signed.Time())
	}
	return true, c.room.Logs.Cosign(ctx, c.room.ID, p.Size, signed.Line(s.key.Name()))
}

// Forks returns the reports of witnesses and servers that have seen another history of the room than the database
// has.
func (c *Collector) Forks() []Fork { return c.room.Forks.List(c.room.Holder.Regression()) }
