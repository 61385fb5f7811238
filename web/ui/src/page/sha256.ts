// SHA-256 for many short messages that differ only in their last bytes, such as the tries of a proof of work:
// what they share is hashed once. WebCrypto has no such state, and each of its calls costs a promise.
// https://csrc.nist.gov/pubs/fips/180-4/upd1/final

const constants = new Int32Array(64);
const start = new Int32Array(8);
for (let n = 2, found = 0; found < 64; n++) {
  if (!isPrime(n)) continue;
  constants[found] = fraction(Math.cbrt(n));
  if (found < 8) start[found] = fraction(Math.sqrt(n));
  found++;
}

function isPrime(n: number): boolean {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}

/** The first 32 bits after the point. */
function fraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}

const schedule = new Int32Array(64);

/** Hashes a block of 16 words from a position of data into the state. */
function compress(state: Int32Array, data: Int32Array, at: number): void {
  const w = schedule;
  for (let i = 0; i < 16; i++) w[i] = data[at + i]!;
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!;
    const y = w[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + constants[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = (state[0]! + a) | 0;
  state[1] = (state[1]! + b) | 0;
  state[2] = (state[2]! + c) | 0;
  state[3] = (state[3]! + d) | 0;
  state[4] = (state[4]! + e) | 0;
  state[5] = (state[5]! + f) | 0;
  state[6] = (state[6]! + g) | 0;
  state[7] = (state[7]! + h) | 0;
}

/** Hashes messages that begin with the same bytes and end with a number of 32 bits, big-endian. */
export class Tail {
  readonly #shared: Int32Array; // the state after the blocks that the number does not reach
  readonly #rest: Int32Array; // one or two blocks: what is left of the message, and the padding
  readonly #at: number; // byte of the number in the rest
  readonly #state = new Int32Array(8);

  constructor(prefix: Uint8Array) {
    const size = prefix.length + 4;
    const whole = (prefix.length >> 6) << 6;
    const padded = new Uint8Array(((size + 9 + 63) >> 6) << 6);
    padded.set(prefix);
    padded[size] = 0x80;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 4, 8 * size);
    const words = Int32Array.from({ length: padded.length / 4 }, (_, i) => view.getInt32(4 * i));
    this.#shared = start.slice();
    for (let at = 0; at < whole; at += 64) compress(this.#shared, words, at / 4);
    this.#rest = words.slice(whole / 4);
    this.#at = prefix.length - whole;
  }

  /** The state after a message: its hash in eight words. It is the same array each time. */
  hash(number: number): Int32Array {
    const word = this.#at >> 2;
    const bits = 8 * (this.#at & 3);
    const [first, second] = [this.#rest[word]!, this.#rest[word + 1] ?? 0];
    this.#rest[word] = first | (number >>> bits);
    if (bits > 0) this.#rest[word + 1] = second | (number << (32 - bits));
    const state = this.#state;
    state.set(this.#shared);
    for (let at = 0; at < this.#rest.length; at += 16) compress(state, this.#rest, at);
    this.#rest[word] = first;
    if (bits > 0) this.#rest[word + 1] = second;
    return state;
  }
}
