package rooms

import (
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room/setting"
)

// door is what the only lane of a preset needs of a join.
type door struct {
	kind   simulate.DoorKind
	method string // name of the method
	shows  string // what a visitor shows, as a noun; empty: work
	codes  int    // number of codes that the room takes; 0: any number
	// own has, by key of the server's own issuer, the audience where the server has what the key needs. It then takes
	// the place of codes. nil: none does.
	own map[string]string
	// keys are those of them that the server has, the one to begin with first, see [preset.on].
	keys []string
}

// accountKeys are keys behind which is an account, the strongest first.
var accountKeys = []string{setting.OwnOIDCKey, setting.OwnMailKey}

// on returns the preset as the server can have it.
func (p preset) on(rooms *control.Rooms) preset {
	if p.door == nil || rooms.Issuer == nil {
		return p
	}
	d := *p.door
	d.keys = slices.DeleteFunc(slices.Clone(accountKeys), func(key string) bool {
		return d.own[key] == "" || rooms.Issuer.Lacks(key) != ""
	})
	if p.door = &d; len(d.keys) > 0 {
		p.Suits = d.own[d.keys[0]]
	}
	return p
}

// doorPreset returns a preset with one draw until the start, then one each minute, for visitors who show something.
func doorPreset(name, title, suits string, d door) preset {
	return preset{
		Name: name, Title: title, Suits: suits, early: halfHour,
		windows: []presetWindow{{0, halfHour}, {halfHour, time.Minute}}, door: &d,
	}
}

// line returns the method as it is typed.
func (d *door) line() string {
	if d.kind == simulate.Work {
		return fmt.Sprintf("%s %s %d", d.method, credential.Work, simulate.Default().Door.Bits)
	}
	return fmt.Sprintf("%s %s %s %d", d.method, credential.Signed, d.key(), d.codes)
}

// key returns the key of the server's own issuer that the room begins with.
func (d *door) key() string {
	if len(d.keys) > 0 {
		return d.keys[0]
	}
	return setting.OwnKey
}

// HasDoor reports whether joins need something.
func (p preset) HasDoor() bool { return p.door != nil }

// Lacks says what the server lacks for rooms of the preset, and what to do; empty: nothing.
func (p preset) Lacks(rooms *control.Rooms) string {
	switch {
	case p.door == nil:
	case p.door.kind == simulate.Work && rooms.Beacons()[0] == fairness.NoBeacon:
		return "This server has no beacon, and the work of a join begins with a beacon's round: ask its operator to name " +
			"relays with --beacon-relays."
	case p.door.kind != simulate.Work && rooms.Issuer == nil:
		return "This server runs no issuer, which would confirm visitors. Ask its operator to start it with --issuer own. " +
			"Or paste under “Methods” the key of another organization’s issuer: its command “proofline issuer methods” prints it."
	}
	return ""
}

// Steps says what the organizer does with a room of the preset, in order.
func (p preset) Steps() []string {
	d := p.door
	if d == nil || d.kind == simulate.Work {
		return nil
	}
	const then = "Each visitor opens the room’s page, chooses “Confirm”, types the code and comes back with a place. " +
		"The page says what is wrong if there is no code, a wrong one or a used one."
	switch {
	case d.key() == setting.OwnOIDCKey:
		steps := []string{
			"Enter a title below, check the times, and publish. There is nothing else to set up.",
			"Each visitor opens the room’s page, chooses “Confirm”, signs in at this server’s provider and comes back with a " +
				"place. Another ticket for the same account gets none.",
		}
		if slices.Contains(d.keys, setting.OwnMailKey) {
			steps = append(steps, "Visitors who have no account there cannot join. For them, choose a mailed code under “Who "+
				"confirms visitors” instead: each address gets one place.")
		}
		return steps
	case d.key() == setting.OwnMailKey:
		return []string{
			"Ask whoever runs your mail server how many mails it sends an hour: each visitor needs one.",
			"Enter a title below, check the times, and publish. There is nothing else to set up.",
			"Each visitor opens the room’s page, chooses “Confirm”, types an email address and then the code from the mail, and " +
				"comes back with a place. Another ticket for the same address, with or without “+” and a word, gets none.",
		}
	case d.codes > 0:
		return []string{
			fmt.Sprintf("Enter a title below, check the times, and publish. The room takes %d codes: “At most” under “Methods”.",
				d.codes),
			"The page that follows makes the codes. It shows them once, as a sheet to print and cut, or as a table.",
			"Give each person one code and the room’s address, which is on the sheet, too.",
			then,
		}
	default:
		return []string{
			"Enter a title below, check the times, and publish.",
			fmt.Sprintf("The page that follows makes codes: send one with each %s. Or keep the numbers that people have already, "+
				"such as number and birthday: upload a list of members there.", d.shows),
			then,
		}
	}
}

// doorWords describes in words of the simulator what a door is worth.
type doorWords struct {
	Script string `json:"script"` // what a script gets that asks for many tickets
	Person string `json:"person"` // what a visitor pays
}
