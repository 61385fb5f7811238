import { fromBase64, toBase64 } from "./base64.ts";
import { equal } from "./bytes.ts";
import { parseDecimal } from "./decimal.ts";
import { FormatError, SignatureError } from "./errors.ts";
import { emptyRoot, type Hash, hashSize, maxSize } from "./merkle.ts";
import { type Key, openNote, parseName } from "./note.ts";

/**
 * The head of a log at one size.
 * https://c2sp.org/tlog-checkpoint
 */
export interface Checkpoint {
  origin: string;
  size: bigint; // entries, at most 2^60
  root: Hash;
}

/** Opens a signed checkpoint: the key must have signed it, and have its origin as name. */
export function openCheckpoint(signed: Uint8Array, key: Key): Checkpoint {
  const checkpoint = parseCheckpoint(openNote(signed, key));
  if (checkpoint.origin !== key.name) throw new SignatureError("the checkpoint is of another log");
  return checkpoint;
}

/** Reads the text of a checkpoint: origin, size, root; no extension lines. */
export function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split("\n");
  if (lines.length !== 4 || lines[3] !== "") throw new FormatError("a checkpoint has three lines");
  const origin = parseName(lines[0]!);
  const size = parseDecimal(lines[1]!, maxSize + 1n);
  const root = parseHash(lines[2]!);
  if (size === 0n && !equal(root, emptyRoot)) throw new FormatError("not the root of no entries");
  return { origin, size, root };
}

/** The text that is signed. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/** Reads a hash in base64. */
export function parseHash(text: string): Hash {
  const hash = fromBase64(text);
  if (hash.length !== hashSize) throw new FormatError("not a hash");
  return hash;
}
