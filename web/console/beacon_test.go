package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/room"
)

type unreachable struct{ error }

func (u unreachable) Check(context.Context) error { return u.error }
func (u unreachable) Err() error                  { return u.error }

// TestBeaconTrouble wants the console to spell out the choice while the relays
// of the beacon cannot be reached, and to say nothing otherwise.
func TestBeaconTrouble(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("no route")} {
		chain := room.Chain{Chain: beacon.Quicknet(), Reach: unreachable{err}}
		c := &Console{Options: Options{Control: &control.Rooms{Options: control.Options{Rooms: &room.Rooms{Options: room.Options{Chains: []room.Chain{chain}}}}}}}
		text := c.beaconTrouble()
		if got := c.beaconWarnings(room.Config{}); (len(got) == 1) != (err != nil) {
			t.Errorf("relays fail with %v: publishing warns %q", err, got)
		}
		if got := c.beaconWarnings(room.Config{Beacon: "none"}); len(got) > 0 {
			t.Errorf("relays fail with %v: publishing without a beacon warns %q", err, got)
		}
		for _, want := range []string{"drand:quicknet", "wait", "“none”", "level 1"} {
			if strings.Contains(text, want) != (err != nil) {
				t.Errorf("relays fail with %v: %q, want %q", err, text, want)
			}
		}
	}
}

// TestBeaconPages wants the choice on the pages where a room's beacon is chosen,
// and not above the controls of a sale.
func TestBeaconPages(t *testing.T) {
	t.Parallel()
	s := newConsole(t, func(o *Options) {
		o.Control.Rooms.Chains = []room.Chain{{Chain: beacon.Quicknet(), Reach: unreachable{errors.New("no route")}}}
	})
	s.create(owner, room.Config{Slug: "sale", Beacon: "none"})
	for _, path := range []string{"/console/rooms", "/console/rooms/new", "/console/rooms/new?preset=queue"} {
		s.get(owner, path).want(http.StatusOK).has("cannot reach the public randomness")
	}
	for _, path := range []string{"/console/rooms/sale", "/console/rooms/sale/settings", "/console/guide", "/console/sites"} {
		s.get(owner, path).want(http.StatusOK).lacks("cannot reach the public randomness")
	}
}
