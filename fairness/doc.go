// Package fairness defines the rules of a Proofline room: which entries its transcript may contain,
// and in which order visitors are called.
//
// A room is a list of small text entries. [State.Apply] takes the next entry and either accepts
// it or returns which rule it breaks. The server appends only entries that Apply accepts, and the
// auditor replays the published entries through the same Apply, so one function decides both what
// the server may do and what an auditor accepts.
//
// One room's life:
//
//	room ─► arrive* ─► freeze ─► draw ─► assign* ─► call ─► admit | skip
//	          ▲          │ (next window)    amend* at any time, end once
//	          └──────────┘
//
// Shapes and units: times are milliseconds since the Unix epoch ([Time]), durations are
// milliseconds ([Millis]), positions count from 1 across all windows, seq counts from 0 inside a
// window. The byte-exact grammar, the formulas of draw and shuffle and a worked example are in
// RULES.md.
//
// The package is pure: no clock, no randomness of its own, no I/O. A [State] belongs to one
// goroutine at a time; everything else is safe to share.
package fairness
