// Package simulate tries out a sale before it is published: it sends an invented or recorded crowd through the
// real rules of a room and reports which visitors got what.
//
//	Plan ─► crowd (seed) ─► fairness.State.Apply ─► Result ─► findings
//	                             arrive freeze draw assign call admit skip
//
// Only package fairness orders the line: every arrival, freeze, draw, place, call, admission and skip is an entry
// that the rules accept. The crowd is invented, and the draws are not truly random: a hash replaces the VRF and
// the beacon, which makes no difference, because both are uniform. README.md describes the crowd and its limits.
//
// Units: times are milliseconds since the room's opening, in JSON "1m30s"; shares and chances are
// from 0 to 1; a ticket, here, is an item on sale. The same plan and seed give the same result on
// every machine.
//
// Errors: an [*invalid.Error] lists all problems of a plan, [ErrArrivals] means that a recording is
// invalid. The package is pure: no clock, no I/O, and no randomness except the plan's seed.
package simulate
