// Package site manages the sites that organizations protect: their rules, the signed form in which
// connectors fetch them, and the connectors that report. It has no HTTP. Every operation takes the
// [account.Actor] that performs it. To the actor, a site of another organization does not exist.
//
// # Rules
//
// A site has a name and a rules document (connector/rules/FORMAT.md). The document is kept as its
// owner wrote it, except for characters that a signed note cannot hold: carriage returns and tabs,
// which JSON allows only between values. Each change gets the next version, starting at 1. Versions
// survive deletion: a new site of the same name continues from there, because connectors refuse
// smaller ones. The latest [MaxVersions] documents are kept and can be restored.
//
// A document is refused unless connectors accept it, and unless every room in it that is on this
// server belongs to the organization. A likely mistake, such as a room that does not send visitors
// back to the site, is a [Warning].
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
// (with an em dash in the last line). It is signed with the organization's Ed25519 key, which is
// created on first use and sealed at rest. Connectors verify it with [Sites.Key]. Neither the key
// nor its name ever changes; an attacker with the master key has the keys of the rooms, too.
//
// # Connectors
//
// [Sites.Seen] records a connector's report, with a resolution of 5 s. A connector is forgotten a
// day after its latest report.
//
// Errors are [account.ErrNotFound], [account.ErrForbidden], [account.ErrExists],
// [*account.LimitError], [control.ErrChanged], and [*invalid.Error] for input.
package site
