import { fromUtf8, utf8 } from "../../src/check/bytes.ts";
import { formatCheckpoint } from "../../src/check/checkpoint.ts";
import { type Entry, formatEntry } from "../../src/check/entry.ts";
import type { Evidence, Proven, ProvenRun } from "../../src/check/evidence.ts";
import {
  consistencyRanges,
  type Hash,
  inclusionRanges,
  leafHash,
  nodeHash,
  type Range,
  runRanges,
} from "../../src/check/merkle.ts";
import { formatProof } from "../../src/check/proof.ts";
import type { Operator } from "./room.ts";

/**
 * A log of any size, of which only some entries exist: every subtree without one of them has a made-up root. So an
 * operator can sign a log of billions of entries, and tests can make up evidence piece by piece.
 */
export class SparseLog {
  readonly size: bigint;
  readonly #operator: Operator;
  readonly #entries = new Map<bigint, Uint8Array>();

  constructor(operator: Operator, size: bigint) {
    this.#operator = operator;
    this.size = size;
  }

  set(index: bigint, entry: Entry | Uint8Array): void {
    this.#entries.set(index, entry instanceof Uint8Array ? entry : formatEntry(entry));
  }

  /** The root of a subtree, or of the beginning of the log. */
  root([from, to]: Range): Hash {
    if (to - from === 1n && this.#entries.has(from)) return leafHash(this.#entries.get(from)!);
    if (![...this.#entries.keys()].some((index) => from <= index && index < to)) {
      return leafHash(utf8(`made up: ${from} to ${to}`));
    }
    const half = 1n << BigInt((to - from - 1n).toString(2).length - 1);
    return nodeHash(this.root([from, from + half]), this.root([from + half, to]));
  }

  /** Evidence with only the checkpoint. */
  evidence(): Evidence {
    return { checkpoint: this.#checkpoint(this.size), merits: [], amends: [] };
  }

  receipt(index: bigint): Uint8Array {
    const { path } = this.prove(index);
    const checkpoint = fromUtf8(this.#checkpoint(this.size));
    return utf8(formatProof({ extra: new Uint8Array(0), index, path, checkpoint }));
  }

  prove(index: bigint): Proven {
    const path = inclusionRanges(index, this.size).map((range) => this.root(range));
    return { index, entry: this.#entries.get(index)!, path };
  }

  /** The proof that the log of a smaller size is its beginning; that size must consist of made-up or given subtrees. */
  growth(old: bigint): Hash[] {
    return consistencyRanges(old, this.size).map((range) => this.root(range));
  }

  run(from: bigint, to: bigint): ProvenRun {
    const entries: Uint8Array[] = [];
    for (let index = from; index < to; index++) entries.push(this.#entries.get(index)!);
    return { first: from, entries, proof: runRanges([from, to], this.size).map((range) => this.root(range)) };
  }

  #checkpoint(size: bigint): Uint8Array {
    const { origin } = this.#operator;
    return this.#operator.sign(formatCheckpoint({ origin, size, root: this.root([0n, size]) }));
  }
}
