package rooms

import (
	"cmp"
	"fmt"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// beaconWarnings returns a warning if the draws of a room would currently have to wait.
func (h *editor) beaconWarnings(config room.Config) (list []string) {
	if warning := beaconWarning(h.control); warning != "" && cmp.Or(config.Beacon,
		h.defaultBeacon()) != fairness.NoBeacon {
		list = append(list, warning)
	}
	return list
}

// beaconWarning returns a warning with the organizer's choices if the relays of public randomness cannot
// be reached, and "" otherwise.
func beaconWarning(rooms *control.Rooms) string {
	name, err := rooms.BeaconErr()
	if err != nil {
		return fmt.Sprintf("This server cannot reach the public randomness of %s at the moment. Draws that use it wait "+
			"until then; no visitor loses a place. "+
			"For a new room you can choose: publish it with %[1]s, and its draws wait if this lasts; "+
			"or publish it with the beacon “none”, and its draws do not wait, but no one can check that you did not choose "+
			"their outcome (level 1).", name)
	}
	return ""
}
