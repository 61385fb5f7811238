package rooms

import (
	"cmp"
	"fmt"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// beaconWarnings say, before a room is published, that its draws would wait at
// present.
func (h *editor) beaconWarnings(config room.Config) (list []string) {
	if trouble := beaconTrouble(h.control); trouble != "" && cmp.Or(config.Beacon, h.defaultBeacon()) != fairness.NoBeacon {
		list = append(list, trouble)
	}
	return list
}

// beaconTrouble says that the relays of public randomness cannot be reached, and
// what the organizer can choose between; empty when nothing is wrong.
func beaconTrouble(rooms *control.Rooms) string {
	name, err := rooms.BeaconTrouble()
	if err != nil {
		return fmt.Sprintf("This server cannot reach the public randomness of %s at the moment. Draws that use it wait until it can; nobody loses a place. "+
			"For a new room you can choose: publish it with %[1]s, and its draws wait if this lasts; "+
			"or publish it with the beacon “none”, and its draws do not wait, but nobody can check that you did not choose their outcome (level 1).", name)
	}
	return ""
}
