// Package rules says which requests of a site wait in line. A [Site] is read
// from a JSON document that every connector understands alike; FORMAT.md is
// its specification, schema.json its JSON Schema, and
// connector/testdata/rules-vectors.json what each connector must decide.
//
// The package is pure: no clock, no network, no files. [Site.Decide] reads a
// request as all the origins behind connectors might, and takes the strictest
// decision of these readings, so that no spelling of a protected address is
// let through. Paths are compared without regard to ASCII case.
//
// Errors: [Parse] returns an [InvalidError] that lists every problem with the
// place it is at. A request that cannot be read is no error: it is blocked.
package rules
