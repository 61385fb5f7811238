// Package account knows who may do what on the organizer's side: people,
// organizations and their members, roles, sessions, API tokens, second factors,
// invitations and custom hosts. It has no HTTP.
package account
