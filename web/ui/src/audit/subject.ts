import { concat, utf8 } from "../check/bytes.ts";
import type { Hash } from "../check/merkle.ts";

/** What a credential is good for. */
export interface Subject {
  room: Hash; // SHA-256 of the room entry
  lane: string;
  ticket: Uint8Array; // 16 bytes
  round: Uint8Array; // for work: the beacon's signature of the first round after the room opens, or empty
}

/** What an issuer signs, and what work is done for. */
export function messageOf({ room, lane, ticket }: Subject, method: string, nullifier: Uint8Array): Uint8Array {
  return concat(utf8("proofline/credential/v1\0"), room, utf8(`${method}\0${lane}\0`), ticket, nullifier);
}
