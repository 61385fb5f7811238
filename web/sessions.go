package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/limit"
)

// sessionsBody is the most bytes of a body that names many passes.
const sessionsBody = 1 << 20

// sessionChanges are the passes whose sessions are touched or released.
type sessionChanges struct {
	Touch   []string `json:"touch"`
	Release []string `json:"release"`
}

// sessionOutcomes are what came of them, in the same order.
type sessionOutcomes struct {
	Touch   []room.Outcome `json:"touch"`
	Release []room.Outcome `json:"release"`
}

// changeSessions touches and releases many sessions at once. Passes prove
// themselves, so whoever has one may: a connector that gathered them.
//
// A forged pass costs as much to refuse as a valid one. So the network pays for
// all before they are verified, and gets back what was valid.
func (s *Server) changeSessions(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = noStore
	body, err := readBody(c.Request(), nil, sessionsBody)
	if err != nil {
		return err
	}
	in, err := parseSessionChanges(body)
	if err != nil {
		return err
	}
	network, passes := s.clients.of(c.Request()), len(in.Touch)+len(in.Release)
	if err := s.limits.Take(network, limit.Passes, passes); err != nil {
		return err
	}
	var touched, released []room.Outcome
	err = s.inTurn(c, func() (err error) {
		// A client that goes away does not end it: else forged passes would cost nothing.
		touched, released, err = r.ChangeSessions(s.deadlines.next(), in.Touch, in.Release)
		return err
	})
	s.limits.GiveBack(network, limit.Passes, passes-invalidPasses(touched, released))
	if err != nil {
		return err
	}
	out, err := json.Marshal(sessionOutcomes{touched, released})
	if err != nil {
		return err
	}
	return send(c, http.StatusOK, jsonText, out)
}

func invalidPasses(lists ...[]room.Outcome) (n int) {
	for _, list := range lists {
		for _, outcome := range list {
			if outcome == room.OutcomeInvalid {
				n++
			}
		}
	}
	return n
}

// parseSessionChanges reads a body. The error is an [*room.InvalidError], which
// does not say what a pass was.
func parseSessionChanges(body []byte) (in sessionChanges, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || !errors.Is(d.Decode(new(any)), io.EOF) {
		return in, invalid("", `must be a JSON object of "touch" and "release", lists of passes`)
	}
	if n := len(in.Touch) + len(in.Release); n > room.MaxChanges {
		return in, invalid("", fmt.Sprintf("has %d passes, and at most %d are taken at once", n, room.MaxChanges))
	}
	return in, nil
}
