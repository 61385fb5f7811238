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

// ErrNotCalled is returned when a ticket is claimed before its turn.
var ErrNotCalled = errors.New("not called yet")

// The methods below are a visitor's: the client's Base is the room's URL.

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
	Secret     string    `json:"secret"` // base64url, when the server made the ticket
	Again      bool      `json:"-"`      // the ticket had joined before
}

// Entry returns the text of the arrive entry, as the answer says it is.
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

// Join asks to join; an empty ticket has the server make one, and a secret.
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

// Place is where a ticket stands.
type Place struct {
	Status    string `json:"status"`
	Reason    string `json:"reason"`   // when skipped
	Position  uint64 `json:"position"` // 0 until drawn
	PollAfter int64  `json:"poll_after_ms"`
}

// Place asks where a ticket stands.
func (c *Client) Place(ctx context.Context, ticket string) (Place, error) {
	var p Place
	_, err := c.Call(ctx, http.MethodGet, "/tickets/"+ticket, nil, &p)
	return p, err
}

// Pass is what an admitted visitor gets.
type Pass struct {
	Pass     string `json:"pass"` // JWT
	Position uint64 `json:"position"`
	Location string `json:"location"` // where to go with it
}

// WayBack is where a visitor wants to go in the end; the zero one is nowhere in
// particular.
type WayBack struct {
	To  string // a URL
	Sig string // of the connector that led the visitor to the room
}

// Claim shows the secret of a ticket for its pass; [ErrNotCalled] before its
// turn.
func (c *Client) Claim(ctx context.Context, ticket string, secret [fairness.SecretSize]byte) (Pass, error) {
	return c.ClaimTo(ctx, ticket, secret, WayBack{})
}

// ClaimTo is Claim of who wants to go somewhere.
func (c *Client) ClaimTo(ctx context.Context, ticket string, secret [fairness.SecretSize]byte, back WayBack) (Pass, error) {
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
	First    uint64 `json:"first_position"` // once drawn
}

// State is what everybody may know about a room.
type State struct {
	Phase   string        `json:"phase"`
	Message Message       `json:"message"`
	Windows []WindowState `json:"windows"` // the latest with arrivals
}

// State asks for the room's public document.
func (c *Client) State(ctx context.Context) (State, error) {
	var s State
	_, err := c.Call(ctx, http.MethodGet, "/state", nil, &s)
	return s, err
}
