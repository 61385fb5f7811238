// Package simulate tries a sale out before it is published: it sends a crowd,
// invented or recorded, through the real rules of a room and says who got what.
//
//	Plan ─► crowd (seed) ─► fairness.State.Apply ─► Result ─► findings
//	                             arrive freeze draw assign call admit skip
//
// The line is made by package fairness and by nothing else: every arrival,
// freeze, draw, place, call, admission and skip is an entry that the rules
// accept. What is invented is the crowd, and the randomness of the draws: a
// hash stands in for VRF and beacon, which matters as little as which fair coin
// is tossed. README.md says what the crowd is made of, and what it is not.
//
// Shapes and units: times count in milliseconds from the room's opening, in
// JSON as "1m30s"; shares and chances are from 0 to 1; a ticket, here, is what
// is on sale. A plan with the same seed gives the same result everywhere.
//
// Errors: [*InvalidError] lists everything wrong with a plan, [ErrArrivals]
// says what is wrong with a recording. The package is pure: no clock, no I/O,
// and no randomness but the plan's seed.
package simulate
