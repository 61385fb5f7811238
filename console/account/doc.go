// Package account manages the organizer's side of access: people, organizations and their members,
// console sessions, second factors, sign-in by OpenID Connect, API tokens, invitations and custom
// hosts. It contains no HTTP; web/console and web/manage call it.
//
// A person has an e-mail address, unique on the server, and belongs to organizations with a role in
// each. An organization's members, tokens, hosts and rooms are invisible to others: asking for them
// returns [ErrNotFound], as if they did not exist. Every operation takes the [Actor] or [Session]
// that performs it, checks its permissions, and writes an entry to the activity log.
//
// [Accounts] has a part for each of these, which owns its rows in the database and its caches.
//
// # Signing in
//
//	password ----> second factor (TOTP or recovery code) ----> session
//	issuer   ----/              if enabled
//
// The first sign-in through an issuer to an account with a password removes the password and all
// sessions: see [OIDC.Finish].
//
// Passwords are hashed with argon2id, at most three at a time. One of these places is reserved for known
// browsers and signed-in people, so that guesses do not delay them. A failed attempt counts against the
// network, and against the pair of account and network: after five failures each further attempt
// must wait longer, and after ten only ten an hour are allowed. Guesses from one network therefore do
// not lock the account for others. Guesses from many networks share an account limit: 50 are free,
// then ten an hour. While that limit is exhausted, the person can still sign in from a browser that
// has signed in before, which has its own count, or from a browser that opened a sign-in link. Such a
// link is mailed or made by the server's administrator ([SignInLinks.Make]) and does not replace
// the password. An unknown address gets the same answer, after the same time, as a wrong password.
//
// A session is a random 256-bit token in a cookie; the database stores its SHA-256. It ends after 12 hours without
// use, after 7 days at the latest, and when the password or the second factor is changed in another session.
// Signing in and [People.Confirm] issue a new token.
//
// # Links
//
// Invitations, the first owner's setup and new owner links are one-time 256-bit tokens. They are in
// the fragment of a URL, which browsers do not send, so they appear in no log.
//
// Operations return the errors of the var block, [*invalid.Error] for invalid input and *[RateError]
// for attempts made too soon.
package account
