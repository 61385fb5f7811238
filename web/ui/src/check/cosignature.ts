import { equal, utf8 } from "./bytes.ts";
import { type Checkpoint, formatCheckpoint } from "./checkpoint.ts";
import { verifyEd25519 } from "./ed25519.ts";
import { FormatError } from "./errors.ts";
import { type Key, parseWitnessKey } from "./note.ts";

/**
 * Returns when a witness cosigned a checkpoint, in seconds since the Unix
 * epoch; undefined if the cosignature is invalid.
 * https://c2sp.org/tlog-cosignature
 */
export function cosignedAt(witness: Key, checkpoint: Checkpoint, cosignature: Uint8Array): bigint | undefined {
  const { buffer, byteOffset } = cosignature;
  const time = new DataView(buffer, byteOffset + 4).getBigInt64(0);
  const message = utf8(`cosignature/v1\ntime ${time}\n${formatCheckpoint(checkpoint)}`);
  const known = equal(cosignature.subarray(0, 4), witness.id) && time > 0n;
  return known && verifyEd25519(witness.publicKey, message, cosignature.subarray(12)) ? time : undefined;
}

/** How far, in milliseconds, the clock of a witness may be from the operator's for its cosignature to count. */
const slack = 2000n;

/**
 * The names of the witnesses that cosigned a freeze between its time and that of its round (in milliseconds).
 * Undefined if a cosignature is invalid, too early or too late, out of the witnesses' order, or the second of one
 * witness.
 */
export function cosigners(
  witnesses: readonly string[],
  checkpoint: Checkpoint,
  cosignatures: readonly Uint8Array[],
  frozen: number,
  appears: bigint,
): string[] | undefined {
  const names: string[] = [];
  const rest = witnesses.map(witnessKeyOf).filter((key) => key !== undefined);
  for (const cosignature of cosignatures) {
    let witness: Key | undefined;
    let at: bigint | undefined;
    while (at === undefined) {
      witness = rest.shift();
      if (!witness) return undefined;
      at = cosignedAt(witness, checkpoint, cosignature);
    }
    const latest = 1000n * at + 1000n; // whole seconds are signed
    if (latest <= BigInt(frozen) - slack || latest > appears - slack) return undefined;
    names.push(witness!.name);
  }
  return names;
}

/** The key of a witness; undefined if it is malformed: then no cosignature is valid. */
export function witnessKeyOf(vkey: string): Key | undefined {
  try {
    return parseWitnessKey(vkey);
  } catch (failure) {
    if (failure instanceof FormatError) return undefined;
    throw failure;
  }
}
