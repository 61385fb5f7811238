package roomapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/session"
)

// redeemRetryWindow is the time during which the room is asked again about a used pass.
const redeemRetryWindow = 30 * time.Second

// clientLabel is the label of the key of clients' pseudonyms.
const clientLabel = "proofline connector client 1"

// ErrBusy is returned when a room asks to retry later.
var ErrBusy = errors.New("room is busy")

// Redeemer redeems passes, and remembers which were used. It is safe for concurrent use.
type Redeemer struct {
	clients []byte // key of the client pseudonyms sent to rooms
	now     func() time.Time
	used    session.PassSet // used passes
	denied  session.PassSet // used passes, each with a client that the room has refused
}

// NewRedeemer returns a redeemer of a connector with a key.
func NewRedeemer(key []byte, now func() time.Time) *Redeemer {
	return &Redeemer{clients: session.Derive(key, clientLabel), now: now}
}

// Redeem redeems a pass and returns the new session. Errors: [ErrPass], [ErrBusy],
// [ErrUnreachable].
func (r *Redeemer) Redeem(
	ctx context.Context, s *Server, rm *session.Room, p Pass, client netip.Addr, userAgent string,
) (*session.Session, error) {
	who := r.clientName(rm.URL, client, userAgent)
	if r.isUsed(p.pass, who) {
		return nil, ErrPass
	}
	status, body, err := s.call(ctx, Request{
		Method: http.MethodPost, URL: rm.URL + "/passes/" + p.jti + "/redeem", Token: p.token,
		Client: base64.RawURLEncoding.EncodeToString(who[:]), IsVisitorShaped: true,
	})
	if err != nil {
		return nil, err
	}
	switch now := r.now().UnixMilli(); status {
	case http.StatusOK:
		r.used.Add(p.pass, p.ends, now)
	case http.StatusConflict, http.StatusGone:
		r.used.Add(p.pass, p.ends, now)
		r.denied.Add(passAndClient(p.pass, who), p.ends, now)
		return nil, ErrPass
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return nil, ErrBusy
	default:
		return nil, ErrPass
	}
	var said struct {
		Pass    string    `json:"pass_id"`
		Ends    time.Time `json:"ends"`
		MaxEnds time.Time `json:"ends_at_most"`
	}
	if json.Unmarshal(body, &said) != nil || said.Pass != p.jti || !said.MaxEnds.After(said.Ends) {
		return nil, fmt.Errorf("redeem at %s: %w: malformed response", rm.Name, ErrPass)
	}
	v := rm.New(p.pass, client, userAgent, r.now())
	v.Ticket, v.Token, v.Ends, v.MaxEnds = p.ticket, p.token, said.Ends.UnixMilli(), said.MaxEnds.UnixMilli()
	v.Length = (v.MaxEnds - v.Ends) / 3 // a session lasts at most four times its length
	return v, nil
}

// isUsed reports whether a used pass can be refused without asking the room. For
// a while after the first use the room is still asked, because its response may
// have been lost on the way to this client.
func (r *Redeemer) isUsed(pass, who id.ID) bool {
	since, ok := r.used.Since(pass)
	isOld := ok && r.now().UnixMilli()-since >= redeemRetryWindow.Milliseconds()
	return isOld || r.denied.Has(passAndClient(pass, who))
}

// passAndClient returns a key for a pass and a client.
func passAndClient(pass, who id.ID) id.ID {
	for i := range pass {
		pass[i] ^= who[i]
	}
	return pass
}

// clientName returns the client pseudonym to send to a room, by which the room recognizes a visitor
// whose response was lost: see rules/FORMAT.md.
func (r *Redeemer) clientName(url string, client netip.Addr, userAgent string) (who id.ID) {
	network := session.NetworkOf(client)
	mac := hmac.New(sha256.New, r.clients)
	_, _ = fmt.Fprintf(mac, "%s\n%x\n%s", url, network, userAgent) // never fails
	copy(who[:], mac.Sum(nil))
	return who
}
