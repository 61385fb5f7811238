package account

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// starter completes sign-ins, no matter how the person has proved their identity.
type starter struct {
	members  *pgaccount.Members
	sessions *Sessions
	browsers *browsers
	sealer   *sealer
	activity *recorder
	now      func() time.Time
}

// pendingSignIn is a sign-in that waits for a code.
type pendingSignIn struct {
	Person uuid.UUID `json:"person"`
	// State is a hash of password and factor, so that changing either invalidates the sign-in.
	State []byte `json:"state"`
	By    string `json:"by"`
	Until int64  `json:"until"` // Unix time
}

// signInState returns a value that changes when the password or the factor does.
func signInState(p pgaccount.Person) []byte {
	return hashOf(p.Password + "\x00" + string(p.Factor))
}

// pending returns a sign-in that waits for a code.
func (st *starter) pending(p pgaccount.Person, by string) (SignedIn, error) {
	text, err := st.sealer.sealJSON(sealPending,
		pendingSignIn{p.ID, signInState(p), by, st.now().Add(PendingLife).Unix()})
	return SignedIn{Pending: text}, err
}

// start starts a session.
func (st *starter) start(ctx context.Context, p pgaccount.Person, c Client, by string) (SignedIn, error) {
	org, err := st.homeOf(ctx, p.ID)
	if err != nil {
		return SignedIn{}, err
	}
	token, err := st.sessions.add(ctx, p.ID, org, c)
	if err != nil {
		return SignedIn{}, err
	}
	known, err := st.browsers.remember(p.Email)
	if err != nil {
		return SignedIn{}, err
	}
	if org != uuid.Nil {
		actor := Actor{Kind: Person, ID: p.ID, Name: p.Email, Org: org}
		err = st.activity.record(ctx, actor, "sign-in", p.Email,
			map[string]any{"by": by, "device": device(c.UserAgent), "network": network(c.Addr)})
	}
	return SignedIn{Token: token, Known: known}, err
}

// homeOf returns an organization of a person; the zero value if there is none.
func (st *starter) homeOf(ctx context.Context, person uuid.UUID) (uuid.UUID, error) {
	orgs, err := st.members.Of(ctx, person)
	if err != nil || len(orgs) == 0 {
		return uuid.Nil, err
	}
	return orgs[0].ID, nil
}
