// Package webhook reports what happens in an organization's rooms: to programs by webhooks, and to people by
// alerts.
//
// [Endpoints] and [Alerts] hold the configuration, [Deliveries] the log. The follower fills the outbox, and the
// sender empties it; retry.go defines the retry schedule.
//
// # From transcript to delivery
//
// Events are derived from the transcript. A follower reads the new entries of each room whose
// organization has endpoints or alert recipients, and stores the resulting deliveries in the same
// transaction that advances the room's cursor. Each entry therefore reaches the outbox exactly once,
// whatever fails and however many nodes run. No transaction is open while entries are read: a node
// claims a cursor, and advances it only if no other node has done so since. The other events come from
// elsewhere: room.opened and room.beacon_late from the clock, and room.fork_seen from witnesses.
// EVENTS.md documents all events and their payloads.
//
// An organization's first endpoint receives events from the moment it is created, give or take a
// second.
//
// Events of one kind and room within a second are combined into one, in parts of 500 tickets. A
// follower that has fallen behind combines more.
//
// # Delivery
//
// A delivery is a POST, signed according to Standard Webhooks
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
// Any 2xx response within ten seconds is a success. Otherwise the delivery is retried after 5 s, 30 s,
// 2 min, 10 min, 1 h, 3 h, 8 h and 24 h, each varied by up to 10 %. The id stays the same, so receivers
// can drop duplicates. Order is not guaranteed: up to four deliveries run at once per endpoint, or one
// if its latest attempt failed. An endpoint is disabled when it responds with 410, when all attempts
// fail for three days, or when 50,000 deliveries wait for it. The delivery log is kept for 30 days.
//
// # Addresses
//
// The people who choose endpoints may not be trusted with the server's network. The address is
// therefore checked when connecting, after names have been resolved: it must be public, or in a network
// that the server's configuration allows. Plain HTTP is possible only within allowed networks.
// Redirects and proxies are not followed.
//
// # Alerts
//
// An alert is sent to the recipients that the organization has configured for its kind, by mail or to endpoints as
// an event of type "alert". It is not repeated within 15 minutes. While the database is down, alerts about that go
// directly to the last known recipients, without outbox and log.
package webhook
