// Package connector makes a site's visitors wait in a waiting room before they
// get in: [Connector.Middleware] wraps any http.Handler.
//
//	site, err := rules.Parse(text)                       // which requests wait, see rules/FORMAT.md
//	c, err := connector.New(connector.Options{Site: site, Key: key})
//	http.ListenAndServe(addr, c.Middleware(shop))
//
// Package rules decides which requests need a session. Such a request is handled
// as follows:
//
//	active session cookie       passed on, with X-Proofline-Ticket and X-Proofline-Room
//	?proofline_pass= of room    verify here, redeem at the room, set cookie, 303 to the URL without it
//	page load                   302 to ROOM?to=URL; 303 after a POST
//	anything else               403 {"error":"queue","room":ROOM,"join":URL}, and Proofline-Queue: ROOM
//	gate open (safety-net)      passed on, with a new session cookie
//	room out of reach           the room's failure mode: see [rules.Failure]
//
// A session is a cookie signed with Key. All nodes of a site share the key, and can be added or restarted at any
// time. A session lasts as long as the room determines, is extended while the visitor is active, and ends when the
// room ends it. The site ends it with the response header "Proofline-Command: release", a visitor with a POST to
// [ReleasePath]; the site's other nodes learn of it from the replies to their reports. Upgraded connections, such
// as WebSockets, end with their session.
//
// Rules may come from a file or a URL ([Source]), signed with the key of an
// organization. With [Options.Token] the connector reports to the server every
// ten seconds, or every second if a room has a gate; the reply says whether the
// gate is open and how many sessions may start here.
//
// The package imports no package of the server and takes the time from [Options.Now]. A panic in it counts as a
// failure of the room and does not take the site down.
package connector
