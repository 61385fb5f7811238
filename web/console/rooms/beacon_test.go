package rooms_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/web/console"
)

type unreachable struct{ error }

func (u unreachable) Check(context.Context) error { return u.error }
func (u unreachable) Err() error                  { return u.error }

// TestBeaconPages expects the choice on the pages where a room's beacon is chosen, and not above the controls
// of a sale.
func TestBeaconPages(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t, func(o *console.Options) {
		o.Control.Rooms.Chains = []evidence.Chain{{Chain: beacon.Quicknet(), Reach: unreachable{errors.New("no route")}}}
	})
	s.Create(consoletest.Owner, room.Config{Slug: "sale", Beacon: "none"})
	for _, path := range []string{"/console/rooms", "/console/rooms/new", "/console/rooms/new?preset=queue"} {
		s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("cannot reach the public randomness")
	}
	for _, path := range []string{"/console/rooms/sale", "/console/rooms/sale/settings", "/console/guide", "/console/sites"} {
		s.Get(consoletest.Owner, path).Want(http.StatusOK).Lacks("cannot reach the public randomness")
	}
}
