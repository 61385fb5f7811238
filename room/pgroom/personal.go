package pgroom

import "github.com/proofline/proofline/internal/personal"

// Personal is the personal data of the tables.
var Personal = []personal.Rule{
	{
		Table: "room_sessions", Columns: []string{"pass_id", "redeemed_by"},
		Holds: "visits: the pass, when it was used and given back, and the connector's random number of the visitor",
		Until: "from the end of the visit, or from the expiry of its pass if that is later",
		Due:   "expires_ms < " + personal.Millis("@since") + " and until_ms < " + personal.Millis("@since"),
	},
	{
		Table: "room_free_sessions", Columns: []string{"session_id"},
		Holds: "visits without a ticket: the connector's random number of the visit",
		Until: "ten minutes after the visit, whatever is set", Due: "until_ms < " + personal.Millis("@since"),
	},
	{
		Table: "room_transfers", Columns: []string{"ticket", "code_hash", "sealed"},
		Holds: "places on their way to another device: the ticket, and its secret under a code that only the link has",
		Until: "ten minutes after the request, whatever is set", Due: "expires_at < @now",
	},
}
