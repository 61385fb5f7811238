package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// roomJSON is a room as its organizer sees it.
type roomJSON struct {
	room.Config
	Origin  string     `json:"origin"`
	URL     string     `json:"url"`
	VKey    string     `json:"vkey"`
	Phase   room.Phase `json:"phase"`
	Created time.Time  `json:"created"`
	Size    uint64     `json:"size"` // entries of the transcript
	Counts  countsJSON `json:"counts"`
	Message string     `json:"message"`
	// Awaited are the draws that wait for beacon or witnesses.
	Awaited []awaitedJSON `json:"awaited"`
}

type awaitedJSON struct {
	Window   uint64    `json:"window"`
	Round    uint64    `json:"round"`
	Due      time.Time `json:"due"`       // when the round appears
	HasRound bool      `json:"has_round"` // it is here
	Cosigned []string  `json:"cosigned"`  // names of witnesses
}

type countsJSON struct {
	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn"`
	Assigned uint64 `json:"assigned"`
	Called   uint64 `json:"called"`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	Left     uint64 `json:"left"`
	Revoked  uint64 `json:"revoked"`
	Waiting  uint64 `json:"waiting"`
	Windows  uint64 `json:"windows"`
	Amends   uint64 `json:"amends"`
}

func newRoomJSON(r *room.Room) roomJSON {
	s, awaited := r.Snapshot(), []awaitedJSON{}
	for _, a := range r.Awaited() {
		awaited = append(awaited, awaitedJSON{uint64(a.Window), a.Round, a.Due, a.HasRound, append([]string{}, a.Cosigned...)})
	}
	return roomJSON{
		Config: r.Config(), Origin: r.Origin, URL: r.URL, VKey: r.VKey,
		Phase: s.Phase(r.Now()), Created: r.Created(), Size: s.Size,
		Counts: countsJSON(s.Counts), Message: s.Message, Awaited: awaited,
	}
}

// summaryJSON is a room in the list. Rooms that have ended are not read from
// their logs for it.
type summaryJSON struct {
	Slug    string      `json:"slug"`
	Title   string      `json:"title"`
	URL     string      `json:"url"`
	Phase   room.Phase  `json:"phase"`
	Created time.Time   `json:"created"`
	Counts  *countsJSON `json:"counts,omitempty"` // not of rooms that have ended
}

func (s *Server) listRooms(c echo.Context) error {
	ctx := c.Request().Context()
	records, err := s.rooms.List(ctx)
	if err != nil {
		return err
	}
	list := []summaryJSON{}
	for _, record := range records {
		item := summaryJSON{
			Slug: record.Slug, Title: record.Title, Created: record.Created,
			URL: s.rooms.PublicURL + publicPath + record.Slug, Phase: room.PhaseEnded,
		}
		if record.Ended == nil {
			r, err := s.rooms.Get(ctx, record.Slug)
			if errors.Is(err, room.ErrNotFound) {
				continue // its creation was not finished
			}
			if err != nil {
				return err
			}
			counts := countsJSON(r.Snapshot().Counts)
			item.Phase, item.Counts = r.Snapshot().Phase(r.Now()), &counts
		}
		list = append(list, item)
	}
	return c.JSON(http.StatusOK, map[string]any{"rooms": list})
}

func (s *Server) createRoom(c echo.Context) error {
	body, err := readBody(c.Request(), nil, managerBody)
	if err != nil {
		return err
	}
	config, err := room.ParseConfig(body)
	if err != nil {
		return err
	}
	r, err := s.rooms.Create(c.Request().Context(), config)
	if err != nil {
		return err
	}
	c.Response().Header()["Location"] = []string{s.rooms.PublicURL + managementPath + "rooms/" + url.PathEscape(r.Slug)}
	return c.JSON(http.StatusCreated, newRoomJSON(r))
}

func (s *Server) showRoom(c echo.Context, r *room.Room) error {
	return c.JSON(http.StatusOK, newRoomJSON(r))
}

func (s *Server) amendRoom(c echo.Context, r *room.Room) error {
	body, err := readBody(c.Request(), nil, managerBody)
	if err != nil {
		return err
	}
	amendment, err := room.ParseAmendment(body)
	if err != nil {
		return err
	}
	if err := r.Amend(c.Request().Context(), amendment); err != nil {
		return err
	}
	return s.showRoom(c, r)
}

// revoke takes a visitor's place away.
func (s *Server) revoke(c echo.Context, r *room.Room) error {
	ticket, err := parseTicket(c.Param("ticket"))
	if err != nil {
		return err
	}
	reason, err := readReason(c.Request())
	if err != nil {
		return err
	}
	if err := r.Revoke(c.Request().Context(), ticket, reason); err != nil {
		return err
	}
	return s.ticket(c, r)
}

// readReason reads the class of reason of a revocation from the body; without
// one it is none of those with a name.
func readReason(r *http.Request) (fairness.Reason, error) {
	body, err := readBody(r, nil, visitorBody)
	if err != nil || len(body) == 0 {
		return fairness.Revoked, err
	}
	in := struct {
		Reason fairness.Reason `json:"reason"`
	}{fairness.Revoked}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil {
		return "", invalid("", `must be a JSON object of at most "reason", a text`)
	}
	return in.Reason, nil
}

// change is the handler of a request to pause, resume or end.
func change(do func(*room.Room, context.Context) error) func(echo.Context, *room.Room) error {
	return func(c echo.Context, r *room.Room) error {
		if err := do(r, c.Request().Context()); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, newRoomJSON(r))
	}
}
