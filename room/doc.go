// Package room runs live rooms: it collects joins into batches, does what the
// clock demands (freeze, draw, assign, call, skip), issues passes, and keeps
// each room's state in memory as a projection of its transcript.
//
// How a join goes:
//
//	Join ─► queue ─► sequencer ─► pglog.Append{ lock; catch up; State.Apply; store; commit } ─► receipt
//
// Each loaded room has one sequencer goroutine, which alone appends and alone
// changes the [fairness.State]. While it commits one batch the next collects,
// so batches grow with the load and nobody waits at low load. Several nodes
// may run the same room: the database's row lock decides who appends, and what
// another node appended is read before anything is built.
//
// Readers see the state as of the entries that are durable, never more. When
// an append fails, what was applied in memory may not be stored: the room is
// read again from its log, and joins that were under way are looked up in it
// or joined again. A visitor notices nothing but the time it takes.
//
// Trying again is for a database that is away. What the rules refuse fails
// alone: the request that asked for it, or the duty, which is logged while
// everything else goes on. A log that does not match its own root is answered
// as the fault it is, and looked at again at most once a second.
//
// # The gate
//
// A site may let people in without waiting as long as nobody is in line, within
// the same outflow. Its connectors report the sessions that begin so, and learn
// how many more may; the database counts them, for any number of nodes. The gate
// opens and shuts by an entry each, which is a duty as calls are: two nodes that
// decide at once append one after the other, and the second finds it done. Counts
// of other nodes are a quarter of a second old, and what connectors begin is told
// within a second, so limits may be exceeded by what comes in that time.
//
// The package knows neither HTTP nor SQL: web is in front of it, audit/pglog
// and room/pgroom are behind it.
package room
