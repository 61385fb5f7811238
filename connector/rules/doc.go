// Package rules decides which requests to a site must wait in line. A [Site] is read from a JSON
// document that all connectors interpret alike; FORMAT.md is its specification, schema.json its
// JSON Schema, and connector/testdata/rules-vectors.json has the decisions that each connector must
// make.
//
// The package is pure: no clock, no network, no files. [Site.Decide] reads a request in every way
// that an origin server might, and returns the strictest decision of these readings, so that no
// spelling of a protected address bypasses the line. Path comparison ignores ASCII case.
//
// [Parse] returns an [InvalidError] that lists every problem with its location. A malformed request
// is not an error: it is blocked.
package rules
