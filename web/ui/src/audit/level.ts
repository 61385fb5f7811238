import { chainHash, quicknet } from "../check/beacon.ts";
import { cosignedAt } from "../check/cosignature.ts";
import { parseWitnessKey } from "../check/note.ts";
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
  vouched: number; // draws whose freeze enough known witnesses cosigned before the round
}

/** The assurance level of a room without a breach; verifier/README.md defines them. */
export function assuranceOf({ policy, draws: { draws } }: Room, trust: Trust): Assurance {
  const known = policy.witnesses.filter((vkey) => trust.witnesses.includes(vkey)).map(parseWitnessKey);
  const signed = ({ sealed, cosignatures }: Witnessed): number =>
    known.filter((key) => cosignatures.some((one) => cosignedAt(key, sealed, one) !== undefined)).length;
  const vouched = policy.quorum > 0 ? draws.filter((draw) => signed(draw) >= policy.quorum).length : 0;
  const beacon = policy.beacon && chainHash(policy.beacon);
  if (!beacon || ![quicknet, ...trust.beacons].includes(beacon) || draws.length === 0) return { level: 1, vouched };
  return { level: vouched === draws.length ? 3 : 2, vouched };
}
