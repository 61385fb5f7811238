// Package connector stands in front of a site and lets nobody past without a
// pass of a waiting room: [Connector.Middleware] wraps any http.Handler.
//
//	site, err := rules.Parse(text)                       // which requests wait, see rules/FORMAT.md
//	c, err := connector.New(connector.Options{Site: site, Key: key})
//	http.ListenAndServe(addr, c.Middleware(shop))
//
// What happens to a request that waits (decided by package rules):
//
//	cookie of a session that goes on    to the site, with X-Proofline-Ticket and X-Proofline-Room
//	?proofline_pass= of the room        verified here, used up there, a cookie, 303 to the URL without it
//	a page is opened                    302 to ROOM?to=URL, 303 instead of a POST
//	anything else                       403 {"error":"queue","room":ROOM,"join":URL}, and Proofline-Queue: ROOM
//	no session, but the gate is open    to the site, with a cookie: rooms in mode safety-net
//	the room cannot be reached          what the rules say for that: see [rules.Failure]
//
// A session is a cookie that this connector signs: whoever has the same Key
// reads it, so that a site may run any number of nodes and restart each at any
// time. It lasts as long as the room says, slides while the visitor is active,
// and is refused once the room says that it is over. A site ends it with the
// response header "Proofline-Command: release", and a visitor with a POST to
// [ReleasePath]; other nodes of the site hear of it with the answers to their
// reports. An upgraded connection, such as a WebSocket, ends with its session.
//
// Rules may come from a file or a URL ([Source]), signed by the key of an
// organization. With [Options.Token] the server is told of the connector every
// ten seconds, or every second where a room has a gate, and says whether it is
// open and how many may begin here.
//
// The package imports nothing of the server. It has no clock of its own and
// never gives up the site for a fault of its own: that counts as a failure of
// the room.
package connector
