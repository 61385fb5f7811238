package pgcontrol

import "github.com/proofline/proofline/internal/personal"

// Personal is the personal data of the tables.
var Personal = []personal.Rule{
	{
		Table: "drafts", Columns: []string{"changed_by"}, Holds: "the mail address of who changed a draft",
		Until: "from the change", Due: "changed_at < @since and changed_by <> '" + personal.Someone + "'",
		Blank: "changed_by = '" + personal.Someone + "'",
	},
	{
		Table: "idempotency_keys", Columns: []string{"key", "request", "headers", "body"},
		Holds: "responses of the management API, to repeat them", Until: "a day after the request, whatever is set",
		Due: "created_at < @now - " + personal.Interval(KeyLife),
	},
}
