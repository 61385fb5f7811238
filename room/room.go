package room

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// Room is one loaded room. Safe for concurrent use.
type Room struct {
	ID     uuid.UUID
	Slug   string
	Owner  pgroom.Owner // owning organization, and the room's custom host
	Origin string       // name of the log: host and path
	URL    string       // where the room is published: the log's prefix
	VKey   string       // verifies the log's checkpoints, C2SP signed-note form

	log    *slog.Logger
	store  *pglog.Store
	texts  texts
	clock  *clock.Clock
	keys   *keys.Keys
	policy *fairness.Policy // as published, never changes
	flow   flow
	ear    ear // batches the reports of connectors
	overs  overs

	current currency // how much of the transcript this node knows

	changing sync.Mutex // held while a bulk change of sessions runs

	evidence  evidence  // for pending draws
	strangers strangers // verifies rounds that anyone may send; shared by all rooms
	counsel   *counsel  // asks witnesses while the room is loaded
	forks     forks     // witnesses' claims of a fork
	marks     *mark.Store
	unmarked  atomic.Bool // a mark could not be written, and this is logged
	forgetful atomic.Bool // a redemption could not be kept, and this is logged
	adrift    atomic.Bool // the database's log differs, or another node holds the room: the sequencer must check

	regression atomic.Pointer[Regression] // nil: the transcript is complete
	pulse      pulse                      // what Vitals needs besides the state

	mu     sync.RWMutex // guards live and stored; the sequencer alone writes
	live   *live
	stored uint64 // entries known to be durable: what readers see

	snapshot atomic.Pointer[Snapshot]
	title    atomic.Pointer[string]
	settings atomic.Pointer[storedSettings]
	message  atomic.Pointer[storedMessage] // the latest that this node read
	lastUse  atomic.Int64                  // Unix seconds

	queue queue
	done  chan struct{} // closed when the sequencer has stopped

	// The sequencer alone uses these.
	chunk  int  // assignments per append
	lost   bool // live differs from the stored log
	undone bool // a duty failed, and this is logged

	rechecked time.Time // when a held room last checked for its missing entries

	// The ticker alone uses these.
	unpublished time.Time // when the published checkpoint fell behind; zero: it is current
	marked      bool      // the room is marked as ended in the database
	wasStuck    bool      // the room was stuck at the latest tick
}

// texts stores what the transcript does not contain: title, settings, and the messages that the transcript
// has as hashes.
type texts interface {
	SetTitle(ctx context.Context, room uuid.UUID, title string) error
	Settings(ctx context.Context, room uuid.UUID) (pgroom.Settings, error)
	MergeSettings(ctx context.Context, room uuid.UUID, change []byte) (pgroom.Settings, error)
	AddMessage(ctx context.Context, room uuid.UUID, text string) ([32]byte, error)
	Message(ctx context.Context, room uuid.UUID, hash [32]byte) (string, error)
}

// live is the projection of a room's log.
type live struct {
	*fairness.State
	log        *pglog.Log
	flow       *flow // of the room; nil acts as the zero value
	evidence   *evidence
	parser     fairness.Parser
	outside    outside           // reused, as is logRoot, to save an allocation per entry
	logRoot    func() audit.Hash // of log
	admissions []fairness.Time   // admissions that may have a live session, oldest first; some may have ended
	noShows    fairness.Position // all positions before it are settled
	lastCall   fairness.Time
	cosigned   [][]uint32 // key hashes of the witnesses of each of the latest draws
	passed     passed     // gate history
	withdrawn  []string   // latest withdrawn tickets, see [Snapshot.Withdrawn]
}

// apply applies one entry; root returns the root of the tree before it.
func (l *live) apply(e fairness.Entry, root func() audit.Hash) error {
	l.outside.root, l.outside.state = root, l.State
	if err := l.Apply(e, &l.outside); err != nil {
		return err
	}
	switch e := e.(type) {
	case *fairness.Admit:
		l.admissions = append(l.within(l.flow.until(e.Time), fairness.Time(l.Policy().Session)), e.Time)
	case *fairness.Call:
		l.lastCall = e.Time
	case *fairness.Draw:
		l.noteCosigned(e)
	case *fairness.Skip:
		l.noteWithdrawn(e)
	case *fairness.Amend:
		if l.flow != nil && (e.Change == fairness.ChangeOpen || e.Change == fairness.ChangeShut) {
			l.flow.guests.use()
		}
	}
	l.passed.note(e, l.State)
	return nil
}

// read applies one entry that is already in the log.
func (l *live) read(text []byte) error {
	e, err := l.parser.Parse(text)
	if err != nil {
		return err
	}
	if l.logRoot == nil {
		l.logRoot = l.log.Root
	}
	return l.apply(e, l.logRoot)
}

// within returns the admissions that are at most age old, oldest first.
func (l *live) within(now, age fairness.Time) []fairness.Time {
	over := sort.Search(len(l.admissions), func(i int) bool { return l.admissions[i]+age+sessionLag > now })
	return l.admissions[over:]
}

// active returns the number of visitors who count against max_active: called visitors whose claim is still
// open, admitted visitors with a live session, and unqueued sessions.
func (l *live) active(now fairness.Time) uint64 { return l.called(now) + l.flow.free() }

// called is active without the unqueued sessions.
func (l *live) called(now fairness.Time) uint64 {
	valid := l.within(l.flow.until(now), redeemWithin(l.Policy()))
	return l.flow.present(uint64(len(valid))) + l.Counts().Waiting
}

// reload reads the room from its log into a new projection. It has no deadline, but gives up when the
// database stops responding.
func (r *Room) reload(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(appendTimeout, cancel)
	defer silence.Stop()
	wanted, err := r.wanted(ctx)
	if err != nil {
		return fmt.Errorf("load room %s: %w", r.Slug, err)
	}
	l := &live{State: &fairness.State{}, log: r.store.Open(r.ID, r.Origin, r.keys.Log), flow: &r.flow,
		evidence: &r.evidence}
	missed := func(size uint64) *wantedMark {
		for i := range wanted {
			if wanted[i].Size == size && wanted[i].isMissed(size, l.log.Root()) {
				return &wanted[i]
			}
		}
		return nil
	}
	var lacks *wantedMark
	err = l.log.Tail(ctx, func(text []byte) error {
		if l.Size()%1024 == 0 {
			silence.Reset(appendTimeout)
		}
		lacks = cmp.Or(lacks, missed(l.log.Size()))
		return l.read(text)
	})
	if err != nil {
		return fmt.Errorf("load room %s: %w", r.Slug, err)
	}
	lacks = cmp.Or(lacks, missed(l.log.Size()))
	for i := range wanted {
		if lacks == nil && l.log.Size() < wanted[i].Size {
			lacks = &wanted[i]
		}
	}
	if lacks != nil {
		if r.live == nil { // not published: the caller keeps it to itself
			r.live, r.stored = l, l.Size()
		}
		return r.regress(ctx, Regression{Has: pglog.Mark{Size: l.log.Size(), Root: l.log.Root()}, Had: lacks.Mark,
			By: lacks.by, isStored: lacks.isHeld})
	}
	silence.Stop()
	if r.live == nil && r.marks.Get(r.markOf()).IsZero() {
		if err := r.consult(ctx, l); err != nil {
			r.live, r.stored = l, l.Size() // not published, as above
			return err
		}
	}
	if err := errors.Join(r.store.Confirm(ctx), r.lift(ctx, wanted)); err != nil {
		return fmt.Errorf("load room %s: %w", r.Slug, err)
	}
	r.expose(l)
	return nil
}

// Joined is the answer to a join.
type Joined struct {
	fairness.Standing
	Again bool // the ticket had already joined

	batch *pglog.Appended // holds the entry; nil when it was already in the log
	room  *Room
}

// AppendReceipt appends the tlog-proof of the arrive entry to dst, against a
// checkpoint that contains it.
func (j *Joined) AppendReceipt(ctx context.Context, dst []byte) ([]byte, error) {
	index := uint64(j.Index)
	if j.batch != nil && index >= j.batch.Start() {
		return j.batch.AppendReceipt(dst, index)
	}
	receipt, err := j.room.receipt(ctx, index)
	return append(dst, receipt...), err
}

// Receipt returns the tlog-proof of a ticket's arrive entry against the newest
// checkpoint. Errors: [ErrTicketUnknown], [*StaleError], and those of the
// database.
func (r *Room) Receipt(ctx context.Context, t fairness.Ticket) ([]byte, error) {
	st, err := r.Place(ctx, t)
	if err != nil {
		return nil, err
	}
	return r.receipt(ctx, uint64(st.Index))
}

func (r *Room) receipt(ctx context.Context, index uint64) ([]byte, error) {
	receipt, err := r.store.Receipt(ctx, r.ID, index)
	if err != nil {
		return nil, err
	}
	p, err := audit.ParseProof(receipt)
	if err == nil {
		err = r.shows(ctx, p.Checkpoint)
	}
	return receipt, err
}

// Join appends a join and returns once it is durable. The same ticket gets the same arrival again. Errors:
// [*EarlyError], [ErrClosed], [ErrFull], [ErrBusy], [ErrStopping], and that of ctx.
func (r *Room) Join(ctx context.Context, t fairness.Ticket) (Joined, error) {
	r.touch()
	if st, ok := r.Standing(t); ok {
		return Joined{Standing: st, Again: true, room: r}, nil
	}
	if err := r.openFor(r.Now()); err != nil {
		return Joined{}, err
	}
	j := &join{ctx: ctx, ticket: t, done: make(chan struct{})}
	if err := r.queue.join(j); err != nil {
		return Joined{}, err
	}
	select {
	case <-j.done:
		j.result.room = r
		return j.result, j.err
	case <-ctx.Done():
		return Joined{}, fmt.Errorf("join: %w", ctx.Err())
	}
}

// openFor refuses joins that the rules would refuse, without a query to the database. It lets a join through
// when the time is so close to a limit that only the database's clock can decide, or when this node is out of
// date.
func (r *Room) openFor(now time.Time) error {
	const slack = 50 * time.Millisecond
	if r.isStale() {
		return nil
	}
	if wait := timeOf(r.policy.Opens).Sub(now); wait > slack {
		return &EarlyError{wait}
	}
	s := r.snapshot.Load()
	if s.Ended || s.Closes != nil && now.Sub(*s.Closes) > slack {
		return ErrClosed
	}
	if r.IsFull() {
		return ErrFull
	}
	return nil
}

// IsFull reports whether the organizer's limit stops visitors from joining for now. On a node that is out of
// date it is false.
func (r *Room) IsFull() bool { return r.isFull(&r.Snapshot().Counts) && !r.isStale() }

func (r *Room) isFull(n *fairness.Counts) bool {
	settings, _ := r.Settings()
	inLine := n.Arrivals - n.Admitted - n.NoShows - n.Left - n.Revoked
	return settings.MaxWaiting > 0 && inLine >= uint64(settings.MaxWaiting)
}

// Standing returns a ticket's standing as of the durable transcript.
func (r *Room) Standing(t fairness.Ticket) (fairness.Standing, bool) {
	now := fromTime(r.Now())
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.live.Standing(t, r.stored, max(now, r.live.Now())) // this node's clock may lag behind
}

// Claim issues the pass of a called ticket to the caller that knows its secret. Claiming again returns the
// same pass until the session ends. Errors: [ErrSecret], [ErrTicketUnknown], [ErrNotCalled], [ErrClaimsFrozen],
// [ErrExpired], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Claim(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) (Pass, error) {
	r.touch()
	if own := fairness.NewTicket(r.Origin, secret); subtle.ConstantTimeCompare(own[:], t[:]) != 1 {
		return Pass{}, ErrSecret
	}
	st, err := r.Place(ctx, t)
	if err != nil {
		return Pass{}, err
	}
	if st.Status == fairness.StatusCalled && r.ClaimsFrozen() {
		return Pass{}, ErrClaimsFrozen
	}
	if st.Status == fairness.StatusAdmitted && !r.IsIn(ctx, st) {
		return Pass{}, ErrExpired
	}
	if st.Status == fairness.StatusCalled && st.Left > 0 {
		err := r.act(ctx, func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
			return []fairness.Entry{&fairness.Admit{Time: now, Ticket: t, Pass: fairness.NewPassID(r.Origin, t)}}, nil
		})
		// The rules refuse it after another claim of the same ticket, or when the time to claim has just
		// ended: the standing says which.
		if _, refused := errors.AsType[*fairness.Violation](err); err != nil && !refused {
			return Pass{}, err
		}
		st, _ = r.Standing(t)
	}
	switch called := st.Status == fairness.StatusCalled; {
	case st.Status == fairness.StatusAdmitted:
		return r.passOf(st)
	case st.Status == fairness.StatusSkipped, called && st.Left <= 0, r.Snapshot().Ended:
		return Pass{}, ErrExpired
	case called && r.ClaimsFrozen(): // frozen since the check above
		return Pass{}, ErrClaimsFrozen
	case called: // expired by the database's clock, and about to by this node's
		return Pass{}, ErrBusy
	}
	return Pass{}, ErrNotCalled
}

func (r *Room) passOf(st fairness.Standing) (Pass, error) {
	p, err := r.newPass(st)
	if err == nil && !p.Expires.After(r.clock.Now()) {
		return Pass{}, ErrExpired
	}
	return p, err
}

// End ends the room for good. Ending it again is no error.
func (r *Room) End(ctx context.Context) error {
	return r.act(ctx, func(s *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		if s.Ended() {
			return nil, nil
		}
		return []fairness.Entry{&fairness.End{Time: now}}, nil
	})
}

// Amend applies an amendment. Invalid or refused changes return an
// [*invalid.Error] and have no effect.
func (r *Room) Amend(ctx context.Context, a Amendment) error {
	now := r.Now()
	if err := append(a.problems(), a.Message.untimely(now)...).Err(); err != nil {
		return err
	}
	var hash [fairness.HashSize]byte
	if a.Message != nil && !a.Message.IsNone() {
		var err error
		m := a.Message.At(now)
		if hash, err = r.texts.AddMessage(ctx, r.ID, m.Canonical()); err != nil {
			return err
		}
	}
	err := r.act(ctx, func(s *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		return a.entries(now, s, hash), nil
	})
	if v, ok := errors.AsType[*fairness.Violation](err); ok {
		return refusal(v)
	}
	if err != nil {
		return err
	}
	return r.amendTexts(ctx, a)
}

// amendTexts changes title and settings, which are not in the transcript.
func (r *Room) amendTexts(ctx context.Context, a Amendment) error {
	if a.Title != nil {
		if err := r.texts.SetTitle(ctx, r.ID, *a.Title); err != nil {
			return err
		}
		r.setTitle(*a.Title)
	}
	if a.SettingsChange == (SettingsChange{}) {
		return nil
	}
	return r.changeSettings(ctx, a.SettingsChange)
}

// setTitle shows a title that is stored.
func (r *Room) setTitle(title string) {
	if was := r.title.Swap(&title); *was != title {
		r.queue.signal() // for a new snapshot
	}
}

// takeTitle shows a title that was read from the database, unless this node has changed the title since
// before was loaded. before is nil for a room that was just loaded.
func (r *Room) takeTitle(before *string, title string) {
	if before != nil && *before != title && r.title.CompareAndSwap(before, &title) {
		r.queue.signal() // for a new snapshot
	}
}

// Policy returns the rules as they were published.
func (r *Room) Policy() fairness.Policy { return *r.policy }

// Created returns when the room's policy was published.
func (r *Room) Created() time.Time { return timeOf(r.policy.Created) }

// Config returns the room's current configuration.
func (r *Room) Config() Config {
	c := configOf(r.Slug, *r.title.Load(), r.policy, r.Snapshot())
	c.Settings = r.settings.Load().Settings
	return c
}

// Checkpoint returns the published checkpoint.
func (r *Room) Checkpoint(ctx context.Context) ([]byte, error) {
	signed, err := r.store.Checkpoint(ctx, r.ID)
	if err == nil {
		err = r.shows(ctx, signed)
	}
	return signed, err
}

// Tile returns a tile or entry bundle, or [ErrNotFound] when the log does not contain all of it.
func (r *Room) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	b, err := r.store.Tile(ctx, r.ID, t)
	if errors.Is(err, pglog.ErrNotFound) {
		return nil, ErrNotFound
	}
	return b, err
}

// touch notes that the room is in use, at most once a second, so that requests do not contend for it.
func (r *Room) touch() {
	if now := time.Now().Unix(); r.lastUse.Load() != now {
		r.lastUse.Store(now)
	}
}

// outside is the rules' oracle: it takes the tree from the log, and verifies proofs.
type outside struct {
	root  func() audit.Hash
	state *fairness.State
}

// Root implements fairness.Oracle.
func (o *outside) Root() [fairness.HashSize]byte { return o.root() }

// VerifyProof implements fairness.Oracle.
func (o *outside) VerifyProof(key [fairness.PublicKeySize]byte, alpha []byte,
	proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return verifyVRF(key, alpha, proof)
}

// VerifyCosignature implements fairness.Oracle.
func (o *outside) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte,
	c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: o.state.Policy().Origin, Size: size, Root: root}.CosignedAt(witness,
		audit.Cosignature(c))
	return fairness.Time(seconds * 1000), err
}

// VerifyRound implements [fairness.Oracle].
func (o *outside) VerifyRound(b *fairness.Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}
