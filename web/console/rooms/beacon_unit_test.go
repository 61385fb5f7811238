package rooms

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
)

type unreachable struct{ error }

func (u unreachable) Check(context.Context) error { return u.error }
func (u unreachable) Err() error                  { return u.error }

// TestBeaconWarning checks that the console explains the choice while the relays of the beacon cannot be
// reached, and shows nothing otherwise.
func TestBeaconWarning(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("no route")} {
		chain := evidence.Chain{Chain: beacon.Quicknet(), Reach: unreachable{err}}
		h := &editor{control: &control.Rooms{Options: control.Options{Rooms: &room.Rooms{Options: room.Options{Chains: []evidence.Chain{chain}}}}}}
		text := beaconWarning(h.control)
		if got := h.beaconWarnings(room.Config{}); (len(got) == 1) != (err != nil) {
			t.Errorf("relays fail with %v: publishing warns %q", err, got)
		}
		if got := h.beaconWarnings(room.Config{Beacon: "none"}); len(got) > 0 {
			t.Errorf("relays fail with %v: publishing without a beacon warns %q", err, got)
		}
		for _, want := range []string{"drand:quicknet", "wait", "“none”", "level 1"} {
			if strings.Contains(text, want) != (err != nil) {
				t.Errorf("relays fail with %v: %q, want %q", err, text, want)
			}
		}
	}
}
