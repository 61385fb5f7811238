// Package room runs live rooms. A [Room] puts the parts of one room together, each of which owns its own state,
// and answers the requests of visitors and organizers. [Rooms] loads the rooms of a server, reads the database's
// clock and what other nodes have stored, and wakes rooms that have something to do.
//
// The path of a join:
//
//	Room.Join ─► Sequencer: queue ─► pglog.Append{ lock; catch up; Projection.Apply; store; commit } ─► receipt
//
// The parts, from the inside out:
//
//   - room/projection: what the transcript says, and which entries are due
//   - room/regression: whether the log continues what was published; holds and recovers rooms
//   - room/sequence: the only goroutine that appends to a room, and the view that readers have
//   - room/evidence: beacon rounds and cosignatures for draws, queries to witnesses
//   - room/session: passes, their keys, and the sessions of admitted visitors
//   - room/safetynet: connectors' reports, unqueued sessions, fail-open intervals
//   - room/transfer, room/queueit: codes that move a place, and tokens for queue-it connectors
//
// Data flows one way: requests and the clock reach the sequencer, which appends and then changes the view, from
// which snapshots are taken. No part calls back into Room.
//
// The package knows neither HTTP nor SQL: web is in front of it, audit/pglog and room/pgroom are behind it.
package room
