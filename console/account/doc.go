// Package account knows who may do what on the organizer's side: people,
// organizations and their members, sessions, second factors, sign-in by OpenID
// Connect, API tokens, invitations and custom hosts. It has no HTTP.
//
// A person has an e-mail address, unique on the server, and is a member of
// organizations with a role. What an organization has, its members, tokens,
// hosts and rooms, others cannot see: it answers [ErrNotFound] as if it did not
// exist. Every operation takes the [Actor] or the [Session] that does it, checks
// what it may, and records the deed.
//
// # Signing in
//
//	password ----> second factor (TOTP or recovery code) ----> session
//	issuer   ----/                 when there is one
//
// The first sign-in by an issuer to an account that had a password takes the
// password and all sessions away: see [Accounts.FinishOIDC].
//
// Passwords are hashed with argon2id, at most two at a time. Attempts that fail
// count against the network, and against the account from that network: from the
// fifth on each has to wait longer, and after ten there are ten an hour. One
// network's guesses keep nobody out elsewhere. Guesses from many networks also
// have ten an hour together, after the first fifty; until they stop, the person
// signs in with a browser that has signed in before, which has a count of its own,
// or with one that has opened a link, which is mailed or made by the server's
// administrator ([Accounts.SignInLink]) and does not stand in for the password.
// An address without an account takes the same time, and gets the same answer, as
// a wrong password.
//
// A session is a random token of 256 bits in a cookie; the database has its
// SHA-256. It ends after 12 hours without use, after 7 days in any case, and
// when the password or the second factor changes elsewhere. Whoever raises its
// power, by signing in or by [Accounts.Confirm], gets another token.
//
// # Links
//
// Invitations, the setup of the first owner and new owner links are one-time
// tokens of 256 bits, too. They go into the fragment of an address, which
// browsers do not send: no log has them.
//
// Errors are those of the var block, *[InvalidError] for input and *[RateError]
// for attempts that came too soon.
package account
