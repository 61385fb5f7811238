// Package wire defines the JSON bodies of the HTTP APIs, each once: the server writes and reads them, and so do
// commands and tests.
//
// The OpenAPI document is generated from the types of the management API: JSON tags name the members, "doc"
// describes one, "enum" lists its values, and "need" marks a required member of a request. A type whose name ends
// in Input is a request's body.
package wire
