// Package hook tells others what happens in an organization's rooms: programs
// by webhooks, people by alerts.
//
// # From transcript to delivery
//
// Events come from the transcript itself. A follower reads the entries of each
// room that somebody listens to, and stores the deliveries that come of them in
// the transaction that moves its cursor: so each entry is told once to the
// outbox, whatever fails and however many nodes there are. No transaction is
// open while entries are read: a node claims a cursor, and moves it if nobody
// else has since. The clock adds room.opened and room.beacon_late, and witnesses
// room.fork_seen. EVENTS.md has every event and its payload.
//
// Who is the first of an organization to listen hears of what happens from then
// on, give or take a second.
//
// What happens within a second comes as one event of each kind and room, in
// parts of 500 tickets; a follower that has to catch up sends more at once.
//
// # Delivery
//
// A delivery is a POST signed as Standard Webhooks says
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
// Any 2xx answer within ten seconds is success. Everything else is tried again
// after 5 s, 30 s, 2 min, 10 min, 1 h, 3 h, 8 h and 24 h, a tenth more or less;
// the id stays the same, so a receiver can drop what it has already. Order is
// not promised: four deliveries at most are under way to one endpoint, one to
// an endpoint whose latest attempt failed. An endpoint is disabled when it
// answers 410, when it only fails for three days, or when 50,000 deliveries
// wait for it. The log is kept for 30 days.
//
// # Addresses
//
// Endpoints are chosen by people who may not be trusted with the server's
// network, so an address is checked when the connection is made, after names
// were resolved: it must be public, or in a network that the server's
// configuration allows. Plain HTTP goes to such a network alone. Redirects and
// proxies are not followed.
//
// # Alerts
//
// An alert goes by mail, or to endpoints as an event of type "alert", to whom
// the organization has named for its kind. None like it follows within 15
// minutes. When the database is away, what was known last is told directly,
// without a log.
package hook
