// Package room runs live rooms: it collects joins into batches, appends the entries that fall due (freeze,
// draw, assign, call, skip), issues passes, and keeps each room's state in memory as a projection of its
// transcript.
//
// The path of a join:
//
//	Join ─► queue ─► sequencer ─► pglog.Append{ lock; catch up; State.Apply; store; commit } ─► receipt
//
// Each loaded room has one sequencer goroutine. Only that goroutine appends and changes the [fairness.State].
// The next batch collects while one commits, so batches grow with the load, and a join at low load does not
// wait. Several nodes may run the same room: the database's row lock decides which node appends, and a node
// reads the entries of other nodes before it builds its own.
//
// Readers see the state as of the latest durable entry. When an append fails, the entries applied in memory
// may not be stored: the node reloads the room from its log, looks up the joins that were in progress, and
// repeats those that are missing. A visitor notices only the delay.
//
// Only database outages are retried. When the rules refuse an entry, only the request or duty behind it
// fails; a failed duty is logged, and everything else goes on. A log that does not match its own root is
// reported as an error, and checked again at most once a second.
//
// # The gate
//
// A site may let visitors in without waiting as long as the line is empty, within the same outflow. Its
// connectors report these unqueued sessions and learn how many more may begin; the database counts them for
// all nodes. Entries open and shut the gate; appending one is a duty, as calls are: if two nodes decide at
// once, the second finds it done. Counts of other nodes are up to a quarter of a second old, and connectors
// report once a second, so the sessions of that time may exceed the limits.
//
// The package knows neither HTTP nor SQL: web is in front of it, audit/pglog and room/pgroom are behind it.
package room
