package pgaccount

import (
	"time"

	"github.com/proofline/proofline/internal/personal"
)

// How long rows are good for.
const (
	SessionLife = 7 * 24 * time.Hour // of a session, however much it is used
	SessionIdle = 12 * time.Hour     // of a session that is not used
	// AttemptKept is how long counts are kept after the latest attempt. It is longer than the longest interval of a
	// limit and the life of a sign-in link.
	AttemptKept = 24 * time.Hour
	tokenKept   = 30 * 24 * time.Hour // expired tokens stay in lists this long
)

// Personal is the personal data of the tables.
var Personal = []personal.Rule{
	{
		Table: "people", Columns: []string{"person_id", "email", "name", "password", "factor", "factor_pending"},
		Holds: "accounts of organizers: address, name, the password's hash, the sealed second factor", Until: leaving,
	},
	{
		Table: "members", Columns: []string{"person_id"}, Holds: "who belongs to which organization",
		Until: "until the person leaves it, or is removed from it",
	},
	{Table: "recovery_codes", Columns: []string{"person_id", "hash"}, Holds: "codes instead of a second factor", Until: leaving},
	{
		Table: "identities", Columns: []string{"subject", "person_id"}, Holds: "accounts at an OpenID Connect provider",
		Until: leaving,
	},
	{
		Table: "former_identities", Columns: []string{"hash"},
		Holds: "hashes of removed identities, which may not make an account by themselves again",
		Until: "from the removal", Due: "removed_at < @since",
	},
	{
		Table: "sessions", Columns: []string{"hash", "person_id", "device"}, Holds: "who is signed in, with which browser",
		Until: "until the session ends, whatever is set",
		Due: "created_at <= @now - " + personal.Interval(SessionLife) + " or seen_at <= @now - " +
			personal.Interval(SessionIdle),
	},
	{
		Table: "invitations", Columns: []string{"hash", "email", "invited_by"}, Holds: "whom an organization invites, and who does",
		Until: "until the link expires, whatever is set", Due: "expires_at <= @now",
	},
	{
		Table: "tokens", Columns: []string{"made_by"}, Holds: "the mail address of who made a token",
		Until: "from when it was made", Due: "created_at < @since and made_by <> '" + personal.Someone + "'",
		Blank: "made_by = '" + personal.Someone + "'",
	},
	{
		Table: "tokens", Columns: []string{"hash", "name"}, Holds: "tokens of programs, by name",
		Until: "from their expiry, and at most 30 days", Due: "expires_at < greatest(@since, @now - " + personal.Interval(tokenKept) + ")",
	},
	{
		Table: "attempts", Columns: []string{"key"}, Holds: "failed sign-ins, by the hash of an address or a network",
		Until: "a day after the latest, whatever is set", Due: "at < @now - " + personal.Interval(AttemptKept),
	},
}

const leaving = "until the person leaves the last organization, or is removed from it"
