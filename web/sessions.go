package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/reply"
)

// sessionsBody is the maximum size of a request body with many passes, in bytes.
const sessionsBody = 1 << 20

// sessionChanges lists the passes whose sessions to touch or release.
type sessionChanges struct {
	Touch   []string `json:"touch"`
	Release []string `json:"release"`
}

// sessionOutcomes lists their outcomes, in the same order.
type sessionOutcomes struct {
	Touch   []session.Outcome `json:"touch"`
	Release []session.Outcome `json:"release"`
}

// change touches and releases many sessions at once. The passes authorize the request, so a
// connector can collect them.
//
// A forged pass costs as much to verify as a valid one. So the network is charged for all passes in
// advance, and the charge for the valid ones is refunded.
func (s *sessions) change(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = reply.NoStore
	body, err := readBody(c.Request(), nil, sessionsBody)
	if err != nil {
		return err
	}
	in, err := parseSessionChanges(body)
	if err != nil {
		return err
	}
	network, passes := s.budgets.network(c), len(in.Touch)+len(in.Release)
	if err := s.budgets.limits.Take(network, limit.Passes, passes); err != nil {
		return err
	}
	var touched, released []session.Outcome
	err = s.budgets.inTurn(c, func() (err error) {
		// a client must not be able to cancel this, or forged passes would cost it nothing
		touched, released, err = r.Sessions.Change(s.deadlines.next(c.Request()), in.Touch, in.Release)
		return err
	})
	s.budgets.limits.GiveBack(network, limit.Passes, passes-invalidPasses(touched, released))
	if err != nil {
		return err
	}
	out, err := json.Marshal(sessionOutcomes{touched, released})
	if err != nil {
		return err
	}
	return reply.Send(c, http.StatusOK, reply.JSON, out)
}

func invalidPasses(lists ...[]session.Outcome) (n int) {
	for _, list := range lists {
		for _, outcome := range list {
			if outcome == session.OutcomeInvalid {
				n++
			}
		}
	}
	return n
}

// parseSessionChanges parses a body. The error is an [*invalid.Error] that does not repeat
// passes.
func parseSessionChanges(body []byte) (in sessionChanges, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || !errors.Is(d.Decode(new(any)), io.EOF) {
		return in, invalid.Field("", `must be a JSON object of "touch" and "release", lists of passes`)
	}
	if n := len(in.Touch) + len(in.Release); n > session.MaxChanges {
		return in, invalid.Field("", fmt.Sprintf("has %d passes: send at most %d at once", n, session.MaxChanges))
	}
	return in, nil
}
