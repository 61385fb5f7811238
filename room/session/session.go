// Package session owns what follows an admission: the pass, its keys, and the visitor's session at the protected
// site, which begins with the admission and counts against max_active until it ends.
//
//	claim ─► Passes.Issue ─► pass ─► site ─► Sessions.Redeem, Touch, Release ─► pgroom, mark
//
// The transcript proves the admission, and the database holds the session. A redemption is also written to the
// marks, so that it survives a database that loses it.
package session

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/projection"
)

var (
	// ErrPass is returned when a text is not a currently valid pass of the room.
	ErrPass = errors.New("not a valid pass of this room")
	// ErrPassUnknown is returned when a pass is redeemed under the id of another pass.
	ErrPassUnknown = errors.New("the pass has a different id than the request")
	// ErrPassUsed is returned when a pass was already redeemed.
	ErrPassUsed = errors.New("the pass was redeemed before")
	// ErrPassUnredeemed is returned when a session is touched whose pass was never redeemed: a visitor who
	// has not entered the site keeps the place no longer than the pass is valid.
	ErrPassUnredeemed = errors.New("the pass was not redeemed; redeem it first")
	// ErrSessionOver is returned when a session has expired or was released.
	ErrSessionOver = errors.New("the session is over")
)

// MaxLengths limits a touched session to this multiple of the policy's session.
const MaxLengths = 4

// maxRounding is how far an expiry may be rounded up.
const maxRounding = time.Second

// Session is an admitted visitor's time at the protected site. It begins with the admission and counts
// against max_active until it ends. A session whose pass is not redeemed ends with the pass.
type Session struct {
	Pass     fairness.PassID
	Ticket   fairness.Ticket
	Position fairness.Position
	Lane     fairness.Lane
	Ends     time.Time // when it ends unless it is touched, or when it was released
	MaxEnds  time.Time // latest end that touches can reach
}

// Room is the room of the sessions.
type Room struct {
	ID     uuid.UUID
	Slug   string
	Origin string
	URL    string
}

// Transcript provides the room's admissions.
type Transcript interface {
	// Standing returns a ticket's standing as of the durable transcript.
	Standing(t fairness.Ticket) (fairness.Standing, bool)
	// ReadLatest waits until this node has read everything that other nodes have appended by now.
	ReadLatest(ctx context.Context) error
}

// Sessions are the sessions of one room. It is safe for concurrent use.
type Sessions struct {
	*Passes
	transcript Transcript
	store      *pgroom.Sessions
	marks      *mark.Store
	clock      *clock.Clock
	log        *slog.Logger

	isUnmarked atomic.Bool // a redemption could not be marked, and the failure has been logged
	changing   sync.Mutex  // held while a bulk change runs
}

// Options configures [New].
type Options struct {
	Room       Room
	Policy     *fairness.Policy
	Keys       *PassKeys
	Transcript Transcript
	Store      *pgroom.Sessions
	Marks      *mark.Store // remembers redemptions
	Clock      *clock.Clock
	Log        *slog.Logger
}

// New returns the sessions of a room.
func New(o Options) *Sessions {
	return &Sessions{Passes: &Passes{o.Room, o.Policy, o.Keys}, transcript: o.Transcript, store: o.Store,
		marks: o.Marks, clock: o.Clock, log: o.Log}
}

// Redeem uses up a pass, given by its id and token; of concurrent attempts on all nodes one succeeds. client
// identifies the redeeming client, in 22 base64url characters: it may redeem the pass again for 30 s, in case
// the response was lost. If it is empty, a second attempt fails. Errors: [ErrPass], [ErrPassUnknown] when the
// token belongs to another pass, [ErrPassUsed], [ErrSessionOver] when the session was released,
// [*invalid.Error] for a malformed client, and those of the sequencer and the database.
func (s *Sessions) Redeem(ctx context.Context, id, token, client string) (Session, error) {
	by, err := parseClient(client)
	if err != nil {
		return Session{}, err
	}
	if s.clock.Step() != 0 {
		return Session{}, clock.ErrStep
	}
	st, err := s.admission(ctx, token, s.life())
	if err != nil {
		return Session{}, err
	}
	if id != fairness.NewPassID(s.room.Origin, st.Ticket).String() {
		return Session{}, ErrPassUnknown
	}
	stored, err := s.store.Redeem(ctx, s.record(st), by)
	switch {
	case err != nil:
		return Session{}, err
	case stored.Changed:
		s.remember(st)
		return s.sessionOf(st, stored), nil
	case stored.Released:
		return Session{}, ErrSessionOver
	case stored.Redeemed:
		return Session{}, ErrPassUsed
	}
	return Session{}, ErrPass // expired
}

// parseClient decodes the identifier of the redeeming client.
func parseClient(text string) (pgroom.Client, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != pgroom.ClientSize || len(text) != base64.RawURLEncoding.EncodedLen(pgroom.ClientSize) {
		return nil, invalid.Field("Proofline-Client", "must be 22 characters of base64url")
	}
	return b, nil
}

// Touch extends an admitted visitor's session to the policy's length from now, and to at most [MaxLengths]
// times that length in total. The pass must have been redeemed; it may have expired. Errors: [ErrPass],
// [ErrPassUnredeemed], [ErrSessionOver], and those of the sequencer and the database.
func (s *Sessions) Touch(ctx context.Context, token string) (Session, error) {
	return s.change(ctx, token, func(a pgroom.Admission) (pgroom.Session, error) {
		length := s.length().Milliseconds()
		return s.store.Touch(ctx, a, length, a.Ends+(MaxLengths-1)*length)
	})
}

// Release ends a session, so that its place is free for the next call. Releasing again is not an error. Errors:
// [ErrPass], [ErrSessionOver], and those of the sequencer and the database.
func (s *Sessions) Release(ctx context.Context, token string) (Session, error) {
	return s.change(ctx, token, func(a pgroom.Admission) (pgroom.Session, error) {
		stored, err := s.store.Release(ctx, a)
		stored.Changed = stored.Changed || stored.Released
		return stored, err
	})
}

// sessionTimeout limits the query for the state of a session.
const sessionTimeout = time.Second

// IsIn reports whether the session of an admitted ticket is live; until it ends, the place is not given to another
// visitor. While the database does not answer, IsIn returns true as long as the pass is valid.
func (s *Sessions) IsIn(ctx context.Context, st fairness.Standing) bool {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	stored, err := s.store.Session(ctx, s.record(st))
	if err != nil || s.clock.Step() != 0 {
		return s.expiry(millis.Time(st.Settled)).After(s.clock.Now())
	}
	return !stored.Released && stored.Until > s.clock.Now().UnixMilli()
}

// change changes the session of a pass.
func (s *Sessions) change(ctx context.Context, token string,
	do func(pgroom.Admission) (pgroom.Session, error)) (Session, error) {
	if s.clock.Step() != 0 {
		return Session{}, clock.ErrStep
	}
	st, err := s.admission(ctx, token, s.maxLife())
	if err != nil {
		return Session{}, err
	}
	stored, err := do(s.record(st))
	switch {
	case err != nil || stored.Changed:
	case !stored.Redeemed && !stored.Released && stored.Until > s.clock.Now().UnixMilli():
		err = ErrPassUnredeemed
	default:
		err = ErrSessionOver
	}
	if err != nil {
		return Session{}, err
	}
	return s.sessionOf(st, stored), nil
}

// record returns the database's form of an admission.
func (s *Sessions) record(st fairness.Standing) pgroom.Admission {
	return pgroom.Admission{
		Room: s.room.ID, Pass: uuid.UUID(fairness.NewPassID(s.room.Origin, st.Ticket)),
		Expires: int64(st.Settled + projection.PassLife(s.policy)),
		Ends:    int64(st.Settled) + int64(s.policy.Session),
	}
}

func (s *Sessions) sessionOf(st fairness.Standing, stored pgroom.Session) Session {
	return Session{
		Pass: fairness.NewPassID(s.room.Origin, st.Ticket), Ticket: st.Ticket, Position: st.Position, Lane: st.Lane,
		Ends: time.UnixMilli(stored.Until).UTC(), MaxEnds: millis.Time(st.Settled).Add(MaxLengths * s.length()),
	}
}

// maxLife returns how long the signature of a pass may be verified for a session that is touched.
func (s *Sessions) maxLife() time.Duration { return MaxLengths*s.length() + maxRounding }

// Keep extends the session of an admitted ticket as if its pass were redeemed, and returns when it ends.
func (s *Sessions) Keep(ctx context.Context, st fairness.Standing) (until time.Time, err error) {
	kept, err := s.store.Keep(ctx, s.record(st))
	return time.UnixMilli(kept.Until), err
}

// admission returns the admission of a pass. The token must be signed by a key that was in use less than life ago,
// and its claims must match the transcript; its expiry is not checked. Errors: [ErrPass], and those of the
// database.
func (s *Sessions) admission(ctx context.Context, token string, life time.Duration) (fairness.Standing, error) {
	pass, err := s.read(ctx, token, life)
	if err != nil {
		return fairness.Standing{}, err
	}
	st, err := s.admitted(ctx, pass.ticket)
	if err != nil {
		return st, err
	}
	return st, s.compare(pass, st)
}

// admitted returns the standing of an admitted ticket. It reads the log if another node may have admitted the
// ticket just now.
func (s *Sessions) admitted(ctx context.Context, t fairness.Ticket) (fairness.Standing, error) {
	if st, ok := s.transcript.Standing(t); ok && st.Status == fairness.StatusAdmitted {
		return st, nil
	}
	if err := s.transcript.ReadLatest(ctx); err != nil {
		return fairness.Standing{}, err
	}
	if st, ok := s.transcript.Standing(t); ok && st.Status == fairness.StatusAdmitted {
		return st, nil
	}
	return fairness.Standing{}, ErrPass
}
