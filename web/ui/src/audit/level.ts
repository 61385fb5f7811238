import { chainHash, quicknet } from "../check/beacon.ts";
import { equal } from "../check/bytes.ts";
import { cosignedAt, witnessKeyOf } from "../check/cosignature.ts";
import type { Key } from "../check/note.ts";
import { majority } from "../check/policy.ts";
import type { Witnessed } from "./draws.ts";
import type { Room } from "./room.ts";

/** What the auditor knows besides the transcript. */
export interface Trust {
  vkey: string | undefined; // of the log
  beacons: readonly string[]; // hashes of chains that the operator does not run, besides quicknet
  witnesses: readonly string[]; // keys of witnesses that are independent of the operator
}

/** The names of the levels, from 0. */
export const levels = ["nothing: a check failed", "consistent", "unpredictable", "witnessed"] as const;

export interface Assurance {
  level: 1 | 2 | 3;
  vouched: number; // draws whose freeze more than half of the witnesses, all of them known, cosigned in time
}

/** The assurance level of a room without a breach; verifier/README.md defines them. */
export function assuranceOf({ policy, draws: { draws } }: Room, trust: Trust): Assurance {
  const trusted = keysOf(trust.witnesses);
  const known = keysOf(policy.witnesses).filter((key) => trusted.some((own) => equal(own.publicKey, key.publicKey)));
  const signed = ({ sealed, cosignatures }: Witnessed): number =>
    known.filter((key) => cosignatures.some((one) => cosignedAt(key, sealed, one) !== undefined)).length;
  const vouched = draws.filter((draw) => signed(draw) >= majority(policy.witnesses)).length;
  const beacon = policy.beacon && chainHash(policy.beacon);
  if (!beacon || ![quicknet, ...trust.beacons].includes(beacon) || draws.length === 0) return { level: 1, vouched };
  return { level: vouched === draws.length ? 3 : 2, vouched };
}

/** The keys of witnesses, without malformed ones. Their names are not signed, so only the keys count. */
function keysOf(witnesses: readonly string[]): Key[] {
  return witnesses.map(witnessKeyOf).filter((key) => key !== undefined);
}
