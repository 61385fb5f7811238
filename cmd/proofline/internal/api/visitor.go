package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
)

// ErrNotCalled is returned when a ticket is claimed before it is called.
var ErrNotCalled = errors.New("not called yet")

// The methods in this file are the visitors' API: the client's Base is the room's
// URL.

// Joined is the answer to a join.
type Joined struct {
	wire.Joined

	Again bool // whether the ticket had joined before
}

// Entry returns the text of the arrive entry that the answer describes.
func (j *Joined) Entry() ([]byte, error) {
	ticket, err := fairness.ParseTicket(j.Ticket)
	if err != nil {
		return nil, err
	}
	arrive := fairness.Arrive{
		Time: fairness.Time(j.Time.UnixMilli()), Window: fairness.WindowIndex(j.Window), Seq: j.Seq,
		Ticket: ticket, Lane: fairness.General,
	}
	return fairness.AppendEntry(nil, &arrive), nil
}

// Join joins the line with a ticket, which may show credentials. If the ticket is empty, the server makes one and its
// secret.
func (c *Client) Join(ctx context.Context, ticket string, shown ...credential.Credential) (Joined, error) {
	var body []byte
	if ticket != "" {
		body = fmt.Appendf(nil, `{"ticket":%q}`, ticket)
	}
	if len(shown) > 0 {
		wish := struct {
			Ticket      string         `json:"ticket"`
			Credentials []door.Written `json:"credentials"`
		}{Ticket: ticket}
		for _, one := range shown {
			wish.Credentials = append(wish.Credentials, door.Write(one))
		}
		var err error
		if body, err = json.Marshal(wish); err != nil {
			return Joined{}, err
		}
	}
	var j Joined
	status, err := c.Call(ctx, http.MethodPost, "/join", body, &j)
	j.Again = status == http.StatusOK
	return j, err
}

// Place is a ticket's status and position.
type Place struct {
	Status    string
	Reason    string // why the ticket was skipped; empty: it was not
	Position  uint64 // 0: not drawn yet
	PollAfter int64  // time until the next poll, in milliseconds
}

// Place returns a ticket's place.
func (c *Client) Place(ctx context.Context, ticket string) (Place, error) {
	var p wire.Place
	_, err := c.Call(ctx, http.MethodGet, "/tickets/"+ticket, nil, &p)
	return Place{Status: p.Status, Reason: p.Reason, Position: orZero(p.Position), PollAfter: p.Poll}, err
}

// orZero returns the value of a member that may be null.
func orZero[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// Pass is the answer to a successful claim.
type Pass struct {
	Pass     string // JWT
	Position uint64
	Location string // URL to visit next, with the pass; empty: the room has no targets
}

// ReturnURL is the URL that a visitor wants to return to. The zero value means no particular one.
type ReturnURL struct {
	To  string
	Sig string // signature of the connector that sent the visitor to the room
}

// Claim exchanges a ticket and its secret for a pass, or returns [ErrNotCalled] before the
// ticket is called.
func (c *Client) Claim(ctx context.Context, ticket string, secret [fairness.SecretSize]byte) (Pass, error) {
	return c.ClaimTo(ctx, ticket, secret, ReturnURL{})
}

// ClaimTo does what Claim does, for a visitor who wants to return to a URL.
func (c *Client) ClaimTo(
	ctx context.Context, ticket string, secret [fairness.SecretSize]byte, back ReturnURL,
) (Pass, error) {
	members := map[string]string{"secret": base64.RawURLEncoding.EncodeToString(secret[:])}
	if back.To != "" {
		members["to"], members["to_sig"] = back.To, back.Sig
	}
	body, err := json.Marshal(members)
	if err != nil {
		return Pass{}, err
	}
	var p wire.Pass
	status, err := c.Call(ctx, http.MethodPost, "/tickets/"+ticket+"/claim", body, &p)
	if err == nil && status == http.StatusAccepted {
		err = ErrNotCalled
	}
	return Pass{Pass: p.Pass, Position: p.Position, Location: orZero(p.Location)}, err
}

// WindowState is a window in a [State].
type WindowState struct {
	Index    uint64
	Arrivals uint32
	Drawn    bool
	First    uint64 // 0: not drawn yet
}

// State is a room's public state.
type State struct {
	Phase   string
	Message room.Message  // zero: none
	Windows []WindowState // latest windows with arrivals
}

// State returns the room's public state.
func (c *Client) State(ctx context.Context) (State, error) {
	var s wire.State
	_, err := c.Call(ctx, http.MethodGet, "/state", nil, &s)
	out := State{Phase: s.Phase, Message: orZero(s.Message)}
	for _, w := range s.Windows {
		out.Windows = append(out.Windows, WindowState{w.Index, w.Arrivals, w.Drawn, orZero(w.First)})
	}
	return out, err
}
