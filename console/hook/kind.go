package hook

import "slices"

// EventKind names what happened.
type EventKind string

// The kinds of events that endpoints may listen to.
const (
	RoomOpened  EventKind = "room.opened"       // joins begin
	WindowDrawn EventKind = "room.window_drawn" // a window has its order
	RoomCalled  EventKind = "room.called"       // people may go in
	Admitted    EventKind = "room.admitted"     // people claimed their passes
	RoomPaused  EventKind = "room.paused"       // calls stop, or calls and claims
	RoomResumed EventKind = "room.resumed"      // calls and claims go on
	RoomAmended EventKind = "room.amended"      // outflow, message or windows changed
	Revoked     EventKind = "room.revoked"      // the organizer took places away
	RoomEnded   EventKind = "room.ended"        // over
	GateOpened  EventKind = "gate.opened"       // the site lets people in without waiting
	GateShut    EventKind = "gate.shut"         // they wait again
	Unguarded   EventKind = "site.unguarded"    // a connector let everybody in for a time
	BeaconLate  EventKind = "room.beacon_late"  // a draw waits for its round
	ForkSeen    EventKind = "room.fork_seen"    // a witness has seen another history

	// TestPing is sent on request alone.
	TestPing EventKind = "test.ping"
	// alertEvent carries an alert to an endpoint that is named for it.
	alertEvent EventKind = "alert"
)

// EventKinds returns the kinds that endpoints may listen to.
func EventKinds() []EventKind {
	return []EventKind{RoomOpened, WindowDrawn, RoomCalled, Admitted, RoomPaused, RoomResumed, RoomAmended, Revoked, RoomEnded, GateOpened, GateShut, Unguarded, BeaconLate, ForkSeen}
}

// AlertKind names what needs a person.
type AlertKind string

// The kinds of alerts.
const (
	AlertBeaconLate       AlertKind = "beacon_late"
	AlertForkSeen         AlertKind = "fork_seen"
	AlertPaused           AlertKind = "room_paused"
	AlertEnded            AlertKind = "room_ended"
	AlertDatabase         AlertKind = "database"
	AlertEndpointDisabled AlertKind = "endpoint_disabled"
	AlertNoShows          AlertKind = "no_shows"       // more than the organization's share
	AlertLineFull         AlertKind = "line_full"      // somebody was turned away
	AlertOutflowBehind    AlertKind = "outflow_behind" // for two minutes
	AlertTokenEnds        AlertKind = "token_ends"     // of the API, that is in use

	alertTest AlertKind = "test"
)

// alertTitles are what an alert is called in a subject line.
var alertTitles = map[AlertKind]string{
	AlertBeaconLate:       "The beacon is late",
	AlertForkSeen:         "Another history was seen",
	AlertPaused:           "Nobody is called",
	AlertEnded:            "The room has ended",
	AlertDatabase:         "Trouble with the database",
	AlertEndpointDisabled: "A webhook was disabled",
	AlertNoShows:          "Many people do not come",
	AlertLineFull:         "The line is full",
	AlertOutflowBehind:    "Fewer people go in than planned",
	AlertTokenEnds:        "A token ends",
	alertTest:             "A test",
}

// Title returns what the alert is called for people.
func (k AlertKind) Title() string { return alertTitles[k] }

// AlertKinds returns the kinds of alerts, the gravest first.
func AlertKinds() []AlertKind {
	return []AlertKind{AlertForkSeen, AlertBeaconLate, AlertDatabase, AlertPaused, AlertEnded, AlertOutflowBehind, AlertNoShows, AlertLineFull, AlertTokenEnds, AlertEndpointDisabled}
}

func isEvent(k EventKind) bool { return slices.Contains(EventKinds(), k) }
func isAlert(k AlertKind) bool { return slices.Contains(AlertKinds(), k) }
