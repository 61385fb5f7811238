import { createHmac } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const step = 30_000; // ms

/** An app that shows the codes of a second factor (https://www.rfc-editor.org/rfc/rfc6238). */
export class Authenticator {
  #last = 0; // step of the code that was used last

  /** Takes the secret in groups, as the page shows it. */
  constructor(secret) {
    this.key = decode(secret.replaceAll(/\s/g, ""));
  }

  /** Returns an unused code. Each works once, and may be one step early. */
  async code() {
    const now = Math.floor(Date.now() / step);
    const next = Math.max(now, this.#last + 1);
    if (next > now + 1) await pause((next - 1) * step - Date.now() + 100);
    this.#last = next;
    return codeOf(this.key, next);
  }
}

function codeOf(key, count) {
  const message = Buffer.alloc(8);
  message.writeBigUInt64BE(BigInt(count));
  const digest = createHmac("sha1", key).update(message).digest();
  const at = digest.at(-1) & 0x0f;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

/** Decodes base32 (https://www.rfc-editor.org/rfc/rfc4648#section-6). */
function decode(text) {
  const bytes = [];
  let [bits, held] = [0, 0];
  for (const letter of text) {
    const value = letters.indexOf(letter);
    if (value < 0) throw new Error(`${letter} is not in base32`);
    held = (held << 5) | value;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push(held >> bits);
    held &= (1 << bits) - 1;
  }
  return Buffer.from(bytes);
}
