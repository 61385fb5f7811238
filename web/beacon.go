package web

import (
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/reply"
)

// takeRound accepts a round of the room's beacon in the JSON of drand relays, from any client: the
// round's signature proves it. That helps when the server itself cannot reach the relays.
func takeRound(c echo.Context, r *room.Room) error {
	body, err := readBody(c.Request(), nil, visitorBody)
	if err != nil {
		return err
	}
	var in struct {
		Round     uint64 `json:"round"`
		Signature string `json:"signature"`
	}
	signature := []byte(nil)
	if err = json.Unmarshal(body, &in); err == nil {
		signature, err = hex.DecodeString(in.Signature)
	}
	if err != nil || in.Round == 0 || len(signature) == 0 {
		return invalid.Field("", `must be a JSON object of "round", a number, and "signature", in hex`)
	}
	if err := r.Evidence.TakeRound(c.Request().Context(), in.Round, signature); err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = reply.NoStore
	return reply.Send(c, http.StatusOK, reply.JSON, []byte("{}"))
}
