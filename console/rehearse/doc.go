// Package rehearse lets an organizer see a sale before there is one: a copy of
// the room, with its schedule moved to this moment and pressed into minutes,
// and a crowd of synthetic visitors who join, wait, claim, give up or never
// come back.
//
//	Config ─► Copy (slug-rehearsal-xxxx, opens in 5 s) ─► room.CreateFor
//	Plan   ─► simulate.Guests ─► one goroutine each: Join ─ Standing ─ Claim ─ Release
//
// The copy is a room like any other, with transcript, draws and pages, so that
// people may join it as well; whoever looks at it finds out that it is one
// (rooms.rehearsal_of, and the title). Visitors are played in this process,
// through the same calls that the web makes, with random secrets that are
// forgotten. They say what a crowd does to the line, and nothing about how many
// requests a server takes: proofline load does that.
//
// A rehearsal ends when its crowd is through and nobody else waits, when it is
// stopped, or after half an hour; then its room is ended. Joins are at most 200
// a second. The limits of how many there are hold for each server process.
package rehearse
