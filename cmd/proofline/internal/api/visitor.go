package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proofline/proofline/fairness"
)

// ErrNotCalled is returned when a ticket is claimed before it is called.
var ErrNotCalled = errors.New("not called yet")

// The methods in this file are the visitors' API: the client's Base is the room's
// URL.

// Joined is the answer to a join.
type Joined struct {
	Ticket     string    `json:"ticket"`
	Index      uint64    `json:"index"` // of the arrive entry
	Window     uint64    `json:"window"`
	WindowFrom time.Time `json:"window_from"`
	WindowTo   time.Time `json:"window_to"`
	Seq        uint32    `json:"seq"`
	Time       time.Time `json:"time"`
	Receipt    string    `json:"receipt"`
	Secret     string    `json:"secret"` // base64url; empty unless the server made the ticket
	Again      bool      `json:"-"`      // whether the ticket had joined before
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
	return arrive.AppendEntry(nil), nil
}

// Join joins the line. For an empty ticket the server makes ticket and secret.
func (c *Client) Join(ctx context.Context, ticket string) (Joined, error) {
	var body []byte
	if ticket != "" {
		body = fmt.Appendf(nil, `{"ticket":%q}`, ticket)
	}
	var j Joined
	status, err := c.Call(ctx, http.MethodPost, "/join", body, &j)
	j.Again = status == http.StatusOK
	return j, err
}

// Place is a ticket's status and position.
type Place struct {
	Status    string `json:"status"`
	Reason    string `json:"reason"`   // of a skip; else empty
	Position  uint64 `json:"position"` // 0: not drawn yet
	PollAfter int64  `json:"poll_after_ms"`
}

// Place returns a ticket's place.
func (c *Client) Place(ctx context.Context, ticket string) (Place, error) {
	var p Place
	_, err := c.Call(ctx, http.MethodGet, "/tickets/"+ticket, nil, &p)
	return p, err
}

// Pass is the answer to a successful claim.
type Pass struct {
	Pass     string `json:"pass"` // JWT
	Position uint64 `json:"position"`
	Location string `json:"location"` // URL to visit next, with the pass
}

// ReturnURL is the URL that a visitor wants to return to; the zero value: no URL in
// particular.
type ReturnURL struct {
	To  string
	Sig string // of the connector that sent the visitor to the room
}

// Claim exchanges a ticket and its secret for a pass; [ErrNotCalled] before the
// ticket is called.
func (c *Client) Claim(ctx context.Context, ticket string, secret [fairness.SecretSize]byte) (Pass, error) {
	return c.ClaimTo(ctx, ticket, secret, ReturnURL{})
}

// ClaimTo is Claim for a visitor that wants to return to a URL.
func (c *Client) ClaimTo(
	ctx context.Context, ticket string, secret [fairness.SecretSize]byte, back ReturnURL,
) (Pass, error) {
	var p Pass
	members := map[string]string{"secret": base64.RawURLEncoding.EncodeToString(secret[:])}
	if back.To != "" {
		members["to"], members["to_sig"] = back.To, back.Sig
	}
	body, err := json.Marshal(members)
	if err != nil {
		return p, err
	}
	status, err := c.Call(ctx, http.MethodPost, "/tickets/"+ticket+"/claim", body, &p)
	if err == nil && status == http.StatusAccepted {
		err = ErrNotCalled
	}
	return p, err
}

// WindowState is a window in a [State].
type WindowState struct {
	Index    uint64 `json:"index"`
	Arrivals uint32 `json:"arrivals"`
	Drawn    bool   `json:"drawn"`
	First    uint64 `json:"first_position"` // 0: not drawn yet
}

// State is a room's public state.
type State struct {
	Phase   string        `json:"phase"`
	Message Message       `json:"message"`
	Windows []WindowState `json:"windows"` // the latest ones with arrivals
}

// State returns the room's public state.
func (c *Client) State(ctx context.Context) (State, error) {
	var s State
	_, err := c.Call(ctx, http.MethodGet, "/state", nil, &s)
	return s, err
}
