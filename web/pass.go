package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/reply"
)

// discovery tells a site's token library how to verify passes, at the address and in the format
// of OpenID Connect Discovery
// (https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata). It names no
// endpoints, because rooms are not identity providers.
type discovery struct {
	Issuer     string   `json:"issuer"`
	Keys       string   `json:"jwks_uri"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
	Subjects   []string `json:"subject_types_supported"`
	Claims     []string `json:"claims_supported"`
}

func sendDiscovery(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = discoveryCache
	return c.JSON(http.StatusOK, discovery{
		Issuer: r.URL, Keys: r.URL + "/jwks.json",
		Algorithms: []string{"EdDSA"}, Subjects: []string{"public"},
		Claims: []string{"iss", "aud", "sub", "jti", "iat", "nbf", "exp", "position", "lane"},
	})
}

// sessions redeems passes, and extends and ends sessions, for sites.
type sessions struct {
	budgets   *budgets
	deadlines *deadlines
}

// onPass wraps the handler of a request with a pass as its bearer token. The token is neither in the
// path nor in the body, because those may be logged.
func (s *sessions) onPass(
	do func(*session.Sessions, context.Context, string) (session.Session, error),
) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		c.Response().Header()["Cache-Control"] = reply.NoStore
		var session session.Session
		err := s.budgets.inTurn(c, func() (err error) {
			session, err = do(r.Sessions, c.Request().Context(), bearer(c.Request()))
			return err
		})
		if err != nil {
			return err
		}
		return sendSession(c, session)
	}
}

// clientHeader identifies the client for whom a pass is redeemed. A client that got no response repeats
// the request with the same value.
const clientHeader = "Proofline-Client"

// redeem redeems a pass. The path names the pass, so that it appears in the site's log and a mixed-up
// token is refused.
func (s *sessions) redeem(c echo.Context, r *room.Room) error {
	id, client := c.Param("jti"), c.Request().Header.Get(clientHeader)
	return s.onPass(func(all *session.Sessions, ctx context.Context, token string) (session.Session, error) {
		return all.Redeem(ctx, id, token, client)
	})(c, r)
}

// bearer returns a request's bearer token, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// sendSession sends a session, with the same members for every operation.
func sendSession(c echo.Context, s session.Session) error {
	w := borrow()
	defer w.giveBack()
	o := &w.answer
	o.reset()
	o.text("pass_id", s.Pass.String())
	o.text("ticket", s.Ticket.String())
	o.number("position", uint64(s.Position))
	o.text("lane", string(s.Lane))
	o.time("ends", s.Ends)
	o.time("ends_at_most", s.MaxEnds)
	o.close()
	return reply.Send(c, http.StatusOK, reply.JSON, o.b)
}
