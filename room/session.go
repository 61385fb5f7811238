package room

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/pgroom"
)

// SessionsMost limits a touched session to this multiple of the policy's session.
const SessionsMost = 4

// RedeemWithin is how long after the admission a pass can be redeemed, unless the policy's session is
// shorter. After that the place goes to the next visitor.
const RedeemWithin = 5 * time.Minute

func redeemWithin(p *fairness.Policy) fairness.Time {
	return min(fairness.Time(p.Session), fairness.Time(RedeemWithin.Milliseconds()))
}

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
	Most     time.Time // latest end that touches can reach
}

// session returns how long a session lasts after its latest touch.
func (r *Room) session() time.Duration { return time.Duration(r.policy.Session) * time.Millisecond }

// Redeem uses up a pass, given by its id and token; of concurrent attempts on all nodes one succeeds. client
// identifies the redeeming client, in 22 base64url characters: it may redeem the pass again for 30 s, in case
// the response was lost. If it is empty, a second attempt fails. Errors: [ErrPass], [ErrPassUnknown] when the
// token belongs to another pass, [ErrPassUsed], [ErrSessionOver] when the session was released,
// [ErrStopping], [*invalid.Error] for a malformed client, and those of the database.
func (r *Room) Redeem(ctx context.Context, id, token, client string) (Session, error) {
	r.touch()
	by, err := parseClient(client)
	if err != nil {
		return Session{}, err
	}
	if r.clock.Step() != 0 {
		return Session{}, ErrClock
	}
	st, err := r.admission(ctx, token, r.session()+maxRounding)
	if err != nil {
		return Session{}, err
	}
	if id != fairness.NewPassID(r.Origin, st.Ticket).String() {
		return Session{}, ErrPassUnknown
	}
	s, err := r.flow.store.Redeem(ctx, r.record(st), by)
	switch {
	case err != nil:
		return Session{}, err
	case s.Changed:
		r.remember(st)
		return r.sessionOf(st, s), nil
	case s.Released:
		return Session{}, ErrSessionOver
	case s.Redeemed:
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

// Touch extends an admitted visitor's session to the policy's length from now, and to at most [SessionsMost]
// times that length in total. The pass must have been redeemed; it may have expired. Errors: [ErrPass],
// [ErrPassUnredeemed], [ErrSessionOver], [ErrStopping], and those of the database.
func (r *Room) Touch(ctx context.Context, token string) (Session, error) {
	return r.onSession(ctx, token, func(a pgroom.Admission) (pgroom.Session, error) {
		length := r.session().Milliseconds()
		return r.flow.store.Touch(ctx, a, length, a.Ends+(SessionsMost-1)*length)
	})
}

// Release ends a session, so that its place is free for the next call. Releasing again is no error. Errors:
// [ErrPass], [ErrSessionOver], [ErrStopping], and those of the database.
func (r *Room) Release(ctx context.Context, token string) (Session, error) {
	return r.onSession(ctx, token, func(a pgroom.Admission) (pgroom.Session, error) {
		s, err := r.flow.store.Release(ctx, a)
		s.Changed = s.Changed || s.Released
		return s, err
	})
}

// visitTimeout limits the query whether a session goes on.
const visitTimeout = time.Second

// IsIn reports whether the session of an admitted ticket goes on; until it ends, the ticket's place is not
// given away. While the database does not answer, it is true as long as the pass is valid.
func (r *Room) IsIn(ctx context.Context, st fairness.Standing) bool {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	s, err := r.flow.store.Session(ctx, r.record(st))
	if err != nil || r.clock.Step() != 0 {
		return r.expiry(timeOf(st.Settled)).After(r.clock.Now())
	}
	return !s.Released && s.Until > r.clock.Now().UnixMilli()
}

// onSession changes the session of a pass.
func (r *Room) onSession(ctx context.Context, token string,
	change func(pgroom.Admission) (pgroom.Session, error)) (Session, error) {
	r.touch()
	if r.clock.Step() != 0 {
		return Session{}, ErrClock
	}
	st, err := r.admission(ctx, token, SessionsMost*r.session()+maxRounding)
	if err != nil {
		return Session{}, err
	}
	s, err := change(r.record(st))
	switch {
	case err != nil || s.Changed:
	case !s.Redeemed && !s.Released && s.Until > r.clock.Now().UnixMilli():
		err = ErrPassUnredeemed
	default:
		err = ErrSessionOver
	}
	if err != nil {
		return Session{}, err
	}
	return r.sessionOf(st, s), nil
}

// record returns the database's form of an admission.
func (r *Room) record(st fairness.Standing) pgroom.Admission {
	return pgroom.Admission{
		Room: r.ID, Pass: uuid.UUID(fairness.NewPassID(r.Origin, st.Ticket)),
		Expires: int64(st.Settled + redeemWithin(r.policy)),
		Ends:    int64(st.Settled) + int64(r.policy.Session),
	}
}

func (r *Room) sessionOf(st fairness.Standing, s pgroom.Session) Session {
	return Session{
		Pass: fairness.NewPassID(r.Origin, st.Ticket), Ticket: st.Ticket, Position: st.Position, Lane: st.Lane,
		Ends: time.UnixMilli(s.Until).UTC(), Most: timeOf(st.Settled).Add(SessionsMost * r.session()),
	}
}
