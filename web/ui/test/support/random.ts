/** Numbers that look random and are the same in every run (splitmix32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** An integer from 0 up to, not including, n. */
  below(n: number): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % n;
  }

  bytes(n: number): Uint8Array {
    return Uint8Array.from({ length: n }, () => this.below(256));
  }
}

/** Every text or byte string that differs by one small change: a byte changed, removed, doubled or inserted. */
export function* mangled(bytes: Uint8Array): Generator<Uint8Array> {
  for (let i = 0; i < bytes.length; i++) {
    for (const flip of [0x01, 0x20, 0x80]) {
      const changed = bytes.slice();
      changed[i]! ^= flip;
      yield changed;
    }
    yield Uint8Array.from([...bytes.subarray(0, i), ...bytes.subarray(i + 1)]);
    for (const extra of [bytes[i]!, 0x0a, 0x20]) {
      yield Uint8Array.from([...bytes.subarray(0, i), extra, ...bytes.subarray(i)]);
    }
  }
  for (const extra of [0x00, 0x0a, 0x20, 0x30]) yield Uint8Array.from([...bytes, extra]);
}
