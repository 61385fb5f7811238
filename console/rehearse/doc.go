// Package rehearse lets an organizer rehearse a sale: it makes a copy of the room, with the schedule
// moved to now and compressed into minutes, and sends it synthetic visitors who join, wait, claim,
// leave or do not show up.
//
//	Config ─► Copy (slug-rehearsal-xxxx, opens in 5 s) ─► room.CreateFor
//	Plan   ─► simulate.Guests ─► one goroutine each: Join ─ Standing ─ Claim ─ Release
//
// The copy is a room like any other, with transcript, draws and pages, so people may join it as well.
// It is marked as a rehearsal (rooms.rehearsal_of, and its title). The synthetic visitors run in this
// process and call the same methods as the web handlers, with random secrets that are not kept. A copy
// needs the same credentials as its room: its methods have keys that exist in memory alone, with which
// the rehearsal vouches for the synthetic visitors, and work is cut to what this server can do for all
// of them. A rehearsal shows how a crowd moves through the line, not how many requests a server can
// handle: for that, use proofline load.
//
// A rehearsal ends, and with it the room, when all synthetic visitors are done and no other visitor
// waits, when it is stopped, or after half an hour. At most 200 visitors join per second. The limits
// on the number of rehearsals apply per server process.
package rehearse
