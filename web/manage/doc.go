// Package manage is the management API: everything that organizers do in the
// console, for programs, below /v1. API.md explains it to those who use it.
//
// One table has every route: who may use it, what it takes, what it answers and
// what does it. Requests are checked against it, and the OpenAPI 3.1 document at
// /v1/openapi.json is made of it, with the schemas of the Go types that are read
// and written; so the document says what the program does. Tests compare every
// answer that they see with it.
//
//	Guard: token -> actor      serve: scope, body, Idempotency-Key -> handler -> reply
//
// Handlers ask [desk.Desk], [account.Accounts] and their neighbours, which look
// at the actor's organization and note the act. What belongs to another
// organization is answered exactly as what does not exist.
//
// Bodies are JSON. Errors are returned, and become problem documents in package
// web. Times are RFC 3339, durations such as "30s".
//
// # Again, and at the same time
//
// A POST that makes or does something may come with an Idempotency-Key, for its
// organization: the first request with it is done, and others with the same
// method, path and body get its answer for a day. Answers with secrets are not
// kept. What can be changed has an ETag, and If-Match keeps a change from
// overwriting somebody else's.
package manage
