package pgactivity

import "github.com/proofline/proofline/internal/personal"

// Personal is the personal data of the table.
var Personal = []personal.Rule{{
	Table: "activity_log", Columns: []string{"actor_id", "actor", "object", "detail"},
	Holds: "who of an organization did what: mail addresses, names of tokens, networks and devices of sign-ins, what was changed",
	Until: "from the time of the entry", Due: "at < @since",
}}
