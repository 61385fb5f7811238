// Package fairness holds the rules of a Proofline room: what may be written
// into its transcript, and in which order people are called because of it.
//
// A room is a list of small text entries. [State.Apply] takes the next entry
// and either accepts it or says which rule it breaks. The server appends only
// what Apply accepts, and the auditor replays the published entries through
// the same Apply, so what the server may do and what an auditor accepts is one
// function.
//
// One room's life:
//
//	room ─► arrive* ─► freeze ─► draw ─► assign* ─► call ─► admit | skip
//	          ▲          │ (next window)    amend* at any time, end once
//	          └──────────┘
//
// Shapes and units: times are milliseconds since the Unix epoch ([Time]),
// durations are milliseconds ([Millis]), positions count from 1 across all
// windows, seq counts from 0 inside a window. The byte-exact grammar, the
// formulas of draw and shuffle and a worked example are in RULES.md.
//
// The package is pure: no clock, no randomness of its own, no I/O. A [State]
// belongs to one goroutine at a time; everything else is safe to share.
package fairness
