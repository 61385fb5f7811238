import { Tail } from "./sha256.ts";

/** The tries that a device needs on average. */
export const expectedTries = (bits: number) => 2 ** bits;

/** The chance to have found a number after so many tries: each one is as good as any other. */
export const chance = (tries: number, bits: number) => 1 - Math.exp(-tries / expectedTries(bits));

/** After how many tries nine of ten devices are done. */
export const usualTries = (bits: number) => Math.LN10 * expectedTries(bits);

/** A search for 8 bytes that give a message a hash with zero bits at its beginning (RULES.md, section 13). */
export class Search {
  readonly #message: Uint8Array;
  readonly #bits: number;
  #tail: Tail | undefined;
  /** The number to try next; all smaller ones were tried. */
  next: number;

  constructor(message: Uint8Array, bits: number, next = 0) {
    this.#message = message;
    this.#bits = bits;
    this.next = next;
  }

  /** Tries a number of times, and returns the 8 bytes in hex if it finds them. */
  run(tries: number): string | undefined {
    for (let left = tries; left > 0; left--, this.next++) {
      const low = this.next >>> 0;
      if (low === 0) this.#tail = undefined;
      this.#tail ??= new Tail(withHigh(this.#message, Math.floor(this.next / 2 ** 32)));
      const hash = this.#tail.hash(low);
      const zeros = Math.clz32(hash[0]!);
      if (zeros < this.#bits && (zeros < 32 || 32 + Math.clz32(hash[1]!) < this.#bits)) continue;
      return this.next.toString(16).padStart(16, "0");
    }
    return undefined;
  }
}

/** A message and the upper half of the 8 bytes. */
function withHigh(message: Uint8Array, high: number): Uint8Array {
  const prefix = new Uint8Array(message.length + 4);
  prefix.set(message);
  new DataView(prefix.buffer).setUint32(message.length, high);
  return prefix;
}
