// The checks that a visitor's browser makes without trusting the server. They
// are written from the documents, not from the Go code: a second opinion.
//
//   source ─► gather ─► evidence ─► checkPlace ─► four lines
//                          └──────► formatBundle ─► a file, for proofline-verify ticket

export { fromBase64Url, toBase64Url } from "./base64.ts";
export { type Bundle, formatBundle, parseBundle } from "./bundle.ts";
export { type Evidence, gather, type Hints, type Proven, type ProvenRun, type Visitor } from "./evidence.ts";
export { checkPlace } from "./place.ts";
export { httpSource, type Source } from "./source.ts";
export { passOf, secretSize, ticketOf } from "./ticket.ts";
export { type Facts, type Line, type LineId, type Reason, type Status, verdicts } from "./verdicts.ts";
