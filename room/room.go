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
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
)

// Room is one loaded room. Safe for concurrent use.
type Room struct {
	ID     uuid.UUID
	Slug   string
	Owner  pgroom.Owner // whose it is, and the custom host that it is under
	Origin string       // name of the log: host and path
	URL    string       // where the room is published: the log's prefix
	VKey   string       // verifies the log's checkpoints, C2SP signed-note form

	log    *slog.Logger
	store  *pglog.Store
	texts  texts
	clock  *clock
	keys   *keys
	policy *fairness.Policy // as published, never changes
	flow   flow
	ear    ear // what connectors tell
	overs  overs

	current currency // how much of the transcript this node knows

	changing sync.Mutex // held while many sessions are changed

	evidence  evidence  // that pending draws wait for
	strangers strangers // who bring some; of all rooms
	counsel   *counsel  // of witnesses, at the start
	forks     forks     // what witnesses hold against the room
	marks     *mark.Store
	unmarked  atomic.Bool // a mark could not be written, and that is logged
	forgetful atomic.Bool // a redemption could not be remembered, and that is logged
	adrift    atomic.Bool // the database's log differs, or another node holds it: the sequencer must look

	regression atomic.Pointer[Regression] // nil: the transcript is complete
	pulse      pulse                      // what vitals show beside the state

	mu     sync.RWMutex // guards live and stored; the sequencer alone writes
	live   *live
	stored uint64 // entries known to be durable: what readers see

	snapshot atomic.Pointer[Snapshot]
	title    atomic.Pointer[string]
	settings atomic.Pointer[storedSettings]
	message  atomic.Pointer[storedMessage] // the latest that was read
	lastUse  atomic.Int64                  // Unix seconds

	queue queue
	done  chan struct{} // closed when the sequencer has stopped

	// The sequencer alone uses these.
	chunk  int  // assignments an append
	lost   bool // the log is not what live holds
	undone bool // a duty is not done, and that is logged

	rechecked time.Time // when a held room last looked for its entries

	// The ticker alone uses these.
	unpublished time.Time // since when the published checkpoint lacks entries
	marked      bool      // as ended
	wasStuck    bool      // and that is logged
}

// texts keeps what the transcript does not: title and settings, and the
// messages whose hashes it has.
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
	flow       *flow // of the room; nil is the zero flow
	evidence   *evidence
	parser     fairness.Parser
	outside    outside           // kept, as is logRoot, for an entry costs no allocation then
	logRoot    func() audit.Hash // of log
	admissions []fairness.Time   // of the people within their session, oldest first; some may be over
	noShows    fairness.Position // all before it are settled
	lastCall   fairness.Time
	cosigned   [][]uint32 // of the latest draws, the key hashes of their witnesses
	passed     passed     // the gate
	withdrawn  []string   // the latest, see [Snapshot.Withdrawn]
}

// apply takes one entry; root is the tree before it.
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

// read takes one entry that is in the log already.
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

// within returns the admissions that are no older than that, oldest first.
func (l *live) within(now, age fairness.Time) []fairness.Time {
	over := sort.Search(len(l.admissions), func(i int) bool { return l.admissions[i]+age+sessionLag > now })
	return l.admissions[over:]
}

// active returns how many people are admitted and their sessions neither over
// nor released, or called and expected, and how many passed an open gate and
// are there.
func (l *live) active(now fairness.Time) uint64 { return l.called(now) + l.flow.free() }

// called is active without those who passed an open gate.
func (l *live) called(now fairness.Time) uint64 {
	valid := l.within(l.flow.until(now), redeemWithin(l.Policy()))
	return l.flow.present(uint64(len(valid))) + l.Counts().Waiting
}

// reload reads the room from its log into a new projection. It takes as long
// as it takes, but gives up when the database falls silent.
func (r *Room) reload(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(appendTimeout, cancel)
	defer silence.Stop()
	wanted, err := r.wanted(ctx)
	if err != nil {
		return fmt.Errorf("load room %s: %w", r.Slug, err)
	}
	l := &live{State: &fairness.State{}, log: r.store.Open(r.ID, r.Origin, r.keys.log), flow: &r.flow, evidence: &r.evidence}
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
		if r.live == nil { // nobody sees it
			r.live, r.stored = l, l.Size()
		}
		return r.regress(ctx, Regression{Has: pglog.Mark{Size: l.log.Size(), Root: l.log.Root()}, Had: lacks.Mark, By: lacks.by, isStored: lacks.isHeld})
	}
	silence.Stop()
	if r.live == nil && r.marks.Get(r.markOf()).IsZero() {
		if err := r.consult(ctx, l); err != nil {
			r.live, r.stored = l, l.Size() // nobody sees it
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
	Again bool // the ticket had joined before

	batch *pglog.Appended // holds the entry; nil when it was in the log before
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

// Join records a request to join, durably, and returns once it is. The same
// ticket again gets the same arrival. Errors: [*EarlyError], [ErrClosed],
// [ErrFull], [ErrBusy], [ErrStopping], and that of ctx.
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

// openFor refuses joins that the rules will refuse, without asking the
// database, unless the moment is so close to a border that only its clock can
// tell, or this node is out of date.
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

// IsFull reports whether no visitor may join for now, by the organizer's limit. A
// node that is out of date does not say so.
func (r *Room) IsFull() bool { return r.isFull(&r.Snapshot().Counts) && !r.isStale() }

func (r *Room) isFull(n *fairness.Counts) bool {
	settings, _ := r.Settings()
	inLine := n.Arrivals - n.Admitted - n.NoShows - n.Left - n.Revoked
	return settings.MaxWaiting > 0 && inLine >= uint64(settings.MaxWaiting)
}

// Standing returns where a ticket stands as of the durable transcript.
func (r *Room) Standing(t fairness.Ticket) (fairness.Standing, bool) {
	now := fromTime(r.Now())
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.live.Standing(t, r.stored, max(now, r.live.Now())) // this node's idea of the time may lag behind
}

// Claim gives a called ticket its pass to whoever shows its secret. Claiming
// again gives the same pass, until the visit is over. Errors: [ErrSecret], [ErrTicketUnknown],
// [ErrNotCalled], [ErrHeld], [ErrExpired], [ErrStopping], [*StaleError], and that of ctx.
func (r *Room) Claim(ctx context.Context, t fairness.Ticket, secret [fairness.SecretSize]byte) (Pass, error) {
	r.touch()
	if own := fairness.NewTicket(r.Origin, secret); subtle.ConstantTimeCompare(own[:], t[:]) != 1 {
		return Pass{}, ErrSecret
	}
	st, err := r.Place(ctx, t)
	if err != nil {
		return Pass{}, err
	}
	if st.Status == fairness.StatusCalled && r.IsHeld() {
		return Pass{}, ErrHeld
	}
	if st.Status == fairness.StatusAdmitted && !r.IsIn(ctx, st) {
		return Pass{}, ErrExpired
	}
	if st.Status == fairness.StatusCalled && st.Left > 0 {
		err := r.act(ctx, func(_ *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
			return []fairness.Entry{&fairness.Admit{Time: now, Ticket: t, Pass: fairness.NewPassID(r.Origin, t)}}, nil
		})
		// A refusal is another claim of the same ticket, or the last moment
		// gone by: the standing says which.
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
	case called && r.IsHeld(): // since this node looked
		return Pass{}, ErrHeld
	case called: // too late by the database's clock, and soon by this node's
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

// End closes the room for good. Ending it again is no error.
func (r *Room) End(ctx context.Context) error {
	return r.act(ctx, func(s *fairness.State, now fairness.Time) ([]fairness.Entry, error) {
		if s.Ended() {
			return nil, nil
		}
		return []fairness.Entry{&fairness.End{Time: now}}, nil
	})
}

// Amend applies an amendment. Invalid or refused changes return an
// [*InvalidError] and have no effect.
func (r *Room) Amend(ctx context.Context, a Amendment) error {
	now := r.Now()
	if problems := append(a.problems(), a.Message.untimely(now)...); len(problems) > 0 {
		return &InvalidError{problems}
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
		return &InvalidError{[]fairness.Problem{refusal(v)}}
	}
	if err != nil {
		return err
	}
	return r.amendTexts(ctx, a)
}

// amendTexts changes what is no matter of the transcript.
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

// setTitle takes a title that is stored.
func (r *Room) setTitle(title string) {
	if was := r.title.Swap(&title); *was != title {
		r.queue.signal() // for a new snapshot
	}
}

// takeTitle takes a title that was read, unless it was changed here since it
// was that of before, which is nil for a room that was just loaded.
func (r *Room) takeTitle(before *string, title string) {
	if before != nil && *before != title && r.title.CompareAndSwap(before, &title) {
		r.queue.signal() // for a new snapshot
	}
}

// Policy returns the rules as they were published.
func (r *Room) Policy() fairness.Policy { return *r.policy }

// Created returns when the room's policy was published.
func (r *Room) Created() time.Time { return timeOf(r.policy.Created) }

// Config returns the room as it is set up now.
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

// Tile returns a tile or entry bundle; [ErrNotFound] when the log does not
// have all of it.
func (r *Room) Tile(ctx context.Context, t audit.Tile) ([]byte, error) {
	b, err := r.store.Tile(ctx, r.ID, t)
	if errors.Is(err, pglog.ErrNotFound) {
		return nil, ErrNotFound
	}
	return b, err
}

// touch notes that the room is in use, without contention for every use.
func (r *Room) touch() {
	if now := time.Now().Unix(); r.lastUse.Load() != now {
		r.lastUse.Store(now)
	}
}

// outside answers the rules' questions: the tree from the log, proofs from
// the VRF.
type outside struct {
	root  func() audit.Hash
	state *fairness.State
}

// Root implements fairness.Oracle.
func (o *outside) Root() [fairness.HashSize]byte { return o.root() }

// VerifyProof implements fairness.Oracle.
func (o *outside) VerifyProof(key [fairness.PublicKeySize]byte, alpha []byte, proof [fairness.ProofSize]byte) ([fairness.BetaSize]byte, error) {
	return verifyVRF(key, alpha, proof)
}

// VerifyCosignature implements fairness.Oracle.
func (o *outside) VerifyCosignature(witness string, size uint64, root [fairness.HashSize]byte, c fairness.Cosignature) (fairness.Time, error) {
	seconds, err := audit.Checkpoint{Origin: o.state.Policy().Origin, Size: size, Root: root}.CosignedAt(witness, audit.Cosignature(c))
	return fairness.Time(seconds * 1000), err
}
