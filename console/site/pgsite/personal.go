package pgsite

import "github.com/proofline/proofline/internal/personal"

// Personal is the personal data of the tables.
var Personal = []personal.Rule{{
	Table: "site_versions", Columns: []string{"changed_by"}, Holds: "the mail address of who changed a site's rules",
	Until: "from the change", Due: "changed_at < @since and changed_by <> '" + personal.Someone + "'",
	Blank: "changed_by = '" + personal.Someone + "'",
}}
