import { toBase64 } from "../check/base64.ts";
import { chainHash } from "../check/beacon.ts";
import { equal } from "../check/bytes.ts";
import { type Checkpoint, openCheckpoint, parseCheckpoint } from "../check/checkpoint.ts";
import { FormatError, SignatureError } from "../check/errors.ts";
import { leafHash } from "../check/merkle.ts";
import { parseKey, parseNote } from "../check/note.ts";
import type { Source } from "../check/source.ts";
import { entriesOf } from "./entries.ts";
import { assuranceOf, type Trust } from "./level.ts";
import { Room } from "./room.ts";
import { Refused, type Rule } from "./rule.ts";
import { Tree } from "./tree.ts";

/** A fault: in the log, or in the first entry that breaks a rule. */
export interface Breach {
  check: Rule | "history" | "signature" | "identity";
  entry?: number; // index, from 0
  text?: string; // of the entry
  why: string;
}

/** The outcome of an audit. The names are those of `proofline-verify audit --json`. */
export interface Report {
  ok: boolean;
  level: number; // 0 to 3
  breaches: Breach[];
  origin: string; // of the log, as its checkpoint says
  key: string; // verifier key of the log
  entries: number; // as the checkpoint says
  root: string; // base64
  arrivals: number; // this and the following up to the first breach of a rule
  windows: number; // with arrivals
  draws: number;
  assignments: number;
  admissions: number;
  beacon: string; // hash of the chain, empty for none
  witnesses: number; // in the policy
  quorum: number;
  vouched: number; // draws that enough known witnesses cosigned in time
}

/** Receives the number of entries audited so far. */
export type Progress = (done: number, total: number) => void;

/**
 * Audits a published log from its first entry to its last. Rejects if the log
 * cannot be read; then nothing is known about it.
 */
export async function audit(source: Source, trust: Trust, progress: Progress = () => undefined): Promise<Report> {
  const signed = await source.checkpoint();
  const claimed = claimOf(signed);
  if (!claimed) return reportOf(undefined, undefined, trust, [{ check: "signature", why: "not a signed checkpoint" }]);
  const { room, tree, breaches } = await replay(source, claimed, progress);
  const isWhole = tree.size === claimed.size && equal(tree.root(), claimed.root);
  if (!isWhole && !breaches.some(({ check }) => check === "history")) {
    breaches.unshift({ check: "history", why: "the entries do not hash to the root of the checkpoint" });
  }
  const vkey = trust.vkey ?? room?.policy.logKey;
  const problem = vkey === undefined ? "there is no key to check it with" : signatureProblem(signed, vkey);
  if (problem !== undefined) breaches.unshift({ check: "signature", why: problem });
  if (room && (room.policy.origin !== claimed.origin || room.policy.logKey !== vkey)) {
    breaches.push({ check: "identity", why: "the policy names another room or key than the log has" });
  }
  return reportOf(claimed, room, trust, breaches);
}

/** Reads a checkpoint without verifying it. */
function claimOf(signed: Uint8Array): Checkpoint | undefined {
  try {
    return parseCheckpoint(parseNote(signed).text);
  } catch (failure) {
    if (failure instanceof FormatError) return undefined;
    throw failure;
  }
}

function signatureProblem(signed: Uint8Array, vkey: string): string | undefined {
  try {
    openCheckpoint(signed, parseKey(vkey));
    return undefined;
  } catch (failure) {
    if (failure instanceof SignatureError || failure instanceof FormatError) return failure.message;
    throw failure;
  }
}

interface Replay {
  room: Room | undefined; // as far as the rules hold; undefined if there is no policy
  tree: Tree; // of all entries
  breaches: Breach[];
}

/** Replays entries until one breaks a rule, and only adds the rest to the tree. */
async function replay(source: Source, { size }: Checkpoint, progress: Progress): Promise<Replay> {
  const tree = new Tree();
  const breaches: Breach[] = [];
  let room: Room | undefined;
  const take = (text: Uint8Array): void => {
    try {
      if (breaches.length > 0) tree.append(leafHash(text));
      else if (room) room.take(text);
      else room = new Room(text, tree);
    } catch (failure) {
      if (!(failure instanceof Refused)) throw failure;
      const shown = new TextDecoder().decode(text.subarray(0, 200));
      breaches.push({ check: failure.rule, entry: Number(tree.size), text: shown, why: failure.message });
      tree.append(leafHash(text));
    }
  };
  try {
    for await (const bundle of entriesOf(source, size)) {
      bundle.forEach(take);
      progress(Number(tree.size), Number(size));
    }
  } catch (failure) {
    if (!(failure instanceof FormatError)) throw failure;
    breaches.unshift({ check: "history", entry: Number(tree.size), why: failure.message });
  }
  if (size === 0n) breaches.push({ check: "policy", why: "the log has no entries" });
  return { room, tree, breaches };
}

function reportOf(log: Checkpoint | undefined, room: Room | undefined, trust: Trust, breaches: Breach[]): Report {
  const assurance = room && assuranceOf(room, trust);
  const ok = breaches.length === 0;
  return {
    ok,
    level: ok && assurance ? assurance.level : 0,
    breaches,
    origin: log?.origin ?? "",
    key: trust.vkey ?? room?.policy.logKey ?? "",
    entries: Number(log?.size ?? 0),
    root: log ? toBase64(log.root) : "",
    arrivals: room?.arrivals.count ?? 0,
    windows: room?.arrivals.windows ?? 0,
    draws: room?.draws.draws.length ?? 0,
    assignments: room?.counts.get("assign") ?? 0,
    admissions: room?.counts.get("admit") ?? 0,
    beacon: room?.policy.beacon ? chainHash(room.policy.beacon) : "",
    witnesses: room?.policy.witnesses.length ?? 0,
    quorum: room?.policy.quorum ?? 0,
    vouched: assurance?.vouched ?? 0,
  };
}
