import { bls12_381 } from "@noble/curves/bls12-381.js";
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";

import { toBase64 } from "../../src/check/base64.ts";
import { concat, uint64, utf8 } from "../../src/check/bytes.ts";
import { type Checkpoint, formatCheckpoint } from "../../src/check/checkpoint.ts";
import type { Beacon } from "../../src/check/entry.ts";
import { toHex } from "../../src/check/hex.ts";

const { shortSignatures } = bls12_381;

/** A private chain, made from a name: all its rounds are known. */
export class Chain {
  readonly beacon: Beacon;
  readonly #secret: Uint8Array;

  constructor(name: string, genesis: bigint, margin = 5000) {
    this.#secret = sha256(utf8(`beacon key of ${name}`));
    const key = shortSignatures.getPublicKey(this.#secret).toBytes(true);
    this.beacon = { id: "test", key, genesis, period: 3, group: sha256(utf8(name)), margin };
  }

  sign(round: bigint): Uint8Array {
    const hashed = shortSignatures.hash(sha256(uint64(round)));
    return shortSignatures.Signature.toBytes(shortSignatures.sign(hashed, this.#secret));
  }
}

/** A witness, made from a name. */
export class Witness {
  readonly vkey: string;
  readonly #seed: Uint8Array;
  readonly #id: Uint8Array;

  constructor(name: string) {
    this.#seed = sha256(utf8(`key of witness ${name}`));
    const typed = concat(Uint8Array.of(4), ed25519.getPublicKey(this.#seed));
    this.#id = sha256(concat(utf8(`${name}\n`), typed)).slice(0, 4);
    this.vkey = `${name}+${toHex(this.#id)}+${toBase64(typed)}`;
  }

  cosign(checkpoint: Checkpoint, seconds: bigint): Uint8Array {
    const time = uint64(BigInt.asUintN(64, seconds));
    const message = utf8(`cosignature/v1\ntime ${seconds}\n${formatCheckpoint(checkpoint)}`);
    return concat(this.#id, time, ed25519.sign(message, this.#seed));
  }
}
