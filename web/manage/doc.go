// Package manage implements the management API below /v1: everything that organizers do in the
// console, for programs. API.md is its user documentation.
//
// One table lists every route: its scope, parameters, body, answer and handler. Requests are checked
// against it, and the OpenAPI 3.1 document at /v1/openapi.json is generated from it and from the Go
// types of bodies, so the document matches the program. Tests validate every answer that they see
// against it.
//
//	Guard: token -> actor      serve: scope, body, Idempotency-Key -> handler -> reply
//
// The table is assembled from parts, one for each kind of resource. A part has its routes, their handlers and the
// one or two services that they need; bodies are types of package wire. TestParts fails if a part is missing from
// the table.
//
// Handlers call [control.Rooms], [account.Accounts] and similar services, which check the actor's
// organization and write the activity log. Requests for anything of another organization get the same
// answer as for something that does not exist.
//
// Bodies are JSON. Errors are returned, and become problem documents in package web. Times are RFC 3339,
// durations such as "30s".
//
// # Retries and concurrent changes
//
// A POST that creates or does something accepts an Idempotency-Key, which is scoped to the
// organization: the first request with it is performed, and later ones with the same method, path and
// body get its answer for a day. Answers with secrets are not stored. Everything that can be changed
// has an ETag, and If-Match keeps a change from overwriting a concurrent one.
package manage
