package webhook

import "slices"

// EventKind is the type of an event.
type EventKind string

// The kinds of events that endpoints may subscribe to.
const (
	RoomOpened  EventKind = "room.opened"       // joining is open
	WindowDrawn EventKind = "room.window_drawn" // the places of a window are drawn
	RoomCalled  EventKind = "room.called"       // visitors may claim
	Admitted    EventKind = "room.admitted"     // visitors claimed their passes
	RoomPaused  EventKind = "room.paused"       // calls stop, or calls and claims
	RoomResumed EventKind = "room.resumed"      // calls and claims continue
	RoomAmended EventKind = "room.amended"      // outflow, seats, message or windows changed
	Revoked     EventKind = "room.revoked"      // the organizer revoked places
	RoomEnded   EventKind = "room.ended"        // the room has ended
	GateOpened  EventKind = "gate.opened"       // the site admits visitors without waiting
	GateShut    EventKind = "gate.shut"         // visitors wait again
	FailOpen    EventKind = "site.fail_open"    // a connector failed open for a time
	BeaconLate  EventKind = "room.beacon_late"  // a draw waits for its beacon round
	ForkSeen    EventKind = "room.fork_seen"    // a witness has seen a different history

	// TestPing is sent only on request.
	TestPing EventKind = "test.ping"
	// alertEvent delivers an alert to an endpoint.
	alertEvent EventKind = "alert"
)

// EventKinds returns the kinds that endpoints may subscribe to.
func EventKinds() []EventKind {
	return []EventKind{RoomOpened, WindowDrawn, RoomCalled, Admitted, RoomPaused, RoomResumed, RoomAmended, Revoked,
		RoomEnded, GateOpened, GateShut, FailOpen, BeaconLate, ForkSeen}
}

// AlertKind is the type of an alert.
type AlertKind string

// The kinds of alerts.
const (
	AlertBeaconLate       AlertKind = "beacon_late"
	AlertForkSeen         AlertKind = "fork_seen"
	AlertPaused           AlertKind = "room_paused"
	AlertEnded            AlertKind = "room_ended"
	AlertDatabase         AlertKind = "database"
	AlertEndpointDisabled AlertKind = "endpoint_disabled"
	AlertNoShows          AlertKind = "no_shows"       // the no-show rate reached the organization's threshold
	AlertLineFull         AlertKind = "line_full"      // visitors were turned away
	AlertOutflowBehind    AlertKind = "outflow_behind" // admissions have been behind for two minutes
	AlertTokenEnds        AlertKind = "token_ends"     // an API token in use expires
	AlertIssuerAway       AlertKind = "issuer_away"    // an issuer that visitors need does not answer

	alertTest AlertKind = "test"
)

// alertTitles are the titles of alerts, for subject lines.
var alertTitles = map[AlertKind]string{
	AlertBeaconLate:       "The beacon is late",
	AlertForkSeen:         "A different history was seen",
	AlertPaused:           "Calls are paused",
	AlertEnded:            "The room has ended",
	AlertDatabase:         "Database problem",
	AlertEndpointDisabled: "A webhook was disabled",
	AlertNoShows:          "Many no-shows",
	AlertLineFull:         "The line is full",
	AlertOutflowBehind:    "Admissions are behind the outflow",
	AlertTokenEnds:        "Token expires",
	AlertIssuerAway:       "An issuer is away",
	alertTest:             "Test",
}

// Title returns the title of the alert.
func (k AlertKind) Title() string { return alertTitles[k] }

// AlertKinds returns the kinds of alerts, most serious first.
func AlertKinds() []AlertKind {
	return []AlertKind{AlertForkSeen, AlertBeaconLate, AlertDatabase, AlertIssuerAway, AlertPaused, AlertEnded,
		AlertOutflowBehind, AlertNoShows, AlertLineFull, AlertTokenEnds, AlertEndpointDisabled}
}

func isEvent(k EventKind) bool { return slices.Contains(EventKinds(), k) }
func isAlert(k AlertKind) bool { return slices.Contains(AlertKinds(), k) }
