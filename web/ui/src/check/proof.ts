import { fromBase64, toBase64 } from "./base64.ts";
import { fromUtf8 } from "./bytes.ts";
import { parseHash } from "./checkpoint.ts";
import { parseDecimal } from "./decimal.ts";
import { FormatError } from "./errors.ts";
import { type Hash, maxSize } from "./merkle.ts";

const header = "c2sp.org/tlog-proof@v1";

/**
 * A receipt: shows offline that an entry is in a log.
 * https://c2sp.org/tlog-proof
 */
export interface Proof {
  extra: Uint8Array; // any bytes, not authenticated
  index: bigint; // of the entry
  path: Hash[]; // inclusion proof, the leaf's sibling first
  checkpoint: string; // signed, verbatim
}

/** Reads a proof; the checkpoint in it is not opened. */
export function parseProof(bytes: Uint8Array): Proof {
  const text = fromUtf8(bytes);
  const end = text.indexOf("\n\n");
  if (end < 0) throw new FormatError("not a tlog-proof");
  const lines = text.slice(0, end).split("\n");
  if (lines.shift() !== header) throw new FormatError("not a tlog-proof of version 1");
  const extra = lines[0]?.startsWith("extra ") ? fromBase64(lines.shift()!.slice("extra ".length)) : new Uint8Array(0);
  const index = lines.shift();
  if (!index?.startsWith("index ")) throw new FormatError("no index");
  const proof: Proof = {
    extra,
    index: parseDecimal(index.slice("index ".length), maxSize),
    path: lines.map(parseHash),
    checkpoint: text.slice(end + 2),
  };
  if (formatProof(proof) !== text) throw new FormatError("tlog-proof not canonical");
  return proof;
}

/** The text that parseProof reads. */
export function formatProof({ extra, index, path, checkpoint }: Proof): string {
  const lines = [header];
  if (extra.length > 0) lines.push(`extra ${toBase64(extra)}`);
  lines.push(`index ${index}`, ...path.map(toBase64));
  return `${lines.join("\n")}\n\n${checkpoint}`;
}
