// Package site is what organizations protect: the rules of their sites, signed
// for the connectors that go by them, and which connectors there are. It has no
// HTTP. Every operation takes the [account.Actor] that does it; a site of another
// organization is to an actor as one that does not exist.
//
// # Rules
//
// A site has a name and a document of rules (connector/rules/FORMAT.md). It is
// kept as its owner wrote it, but for what no signed note can hold: carriage
// returns and tabs, which JSON has between its values alone. Each change gets the
// next serial, from 1 on. A site that is deleted leaves its serials behind: the
// next one of that name goes on after them, for connectors refuse smaller ones.
// The latest [MaxVersions] documents are kept, and can be put back.
//
// A document is refused unless connectors take it, and unless every room in it
// that is on this server is one of the organization. What may be a mistake, such
// as a room that does not lead visitors back to the site, is a [Warning].
//
// # What connectors get
//
// [Sites.Signed] is a C2SP signed note (https://c2sp.org/signed-note):
//
//	proofline-rules/v1
//	shop
//	7
//	{ ...the document, ended by one newline... }
//
//	- queue.example.com/o/main Az3g...
//
// (with an em dash in the last line). It is signed with Ed25519 by the
// organization's key, which is made when it is first needed, and sealed at rest.
// [Sites.Key] is what connectors check it with. The key stays, with its name, and
// is not rotated: who has the master key has the keys of rooms, too.
//
// # Connectors
//
// [Sites.Seen] notes that one reports: to 5 s, and until it was not heard of for a
// day.
//
// Errors are [account.ErrNotFound], [account.ErrForbidden], [account.ErrExists],
// [account.ErrTooMany], [desk.ErrChanged], and *[room.InvalidError] for input.
package site
