import assert from "node:assert/strict";
import { test } from "node:test";
import { p256 } from "@noble/curves/nist.js";

import { concat, utf8 } from "../../src/check/bytes.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { encodeToCurve } from "../../src/check/p256.ts";
import { proofSize, verifyVrf, vrfProofToHash } from "../../src/check/vrf.ts";
import { Random } from "../support/random.ts";
import { fairness, vrf } from "../support/vectors.ts";
import { order, prove, publicKey, scalar } from "../support/vrf.ts";

const sswu = vrf.vectors.filter(({ suite }) => suite === "ECVRF-P256-SHA256-SSWU");
const tai = vrf.vectors.filter(({ suite }) => suite === "ECVRF-P256-SHA256-TAI");
const p = p256.Point.Fp.ORDER;
const bytes = (vector: Record<"PK" | "alpha" | "pi", string>) =>
  [fromHex(vector.PK), fromHex(vector.alpha), fromHex(vector.pi)] as const;

test("examples of RFC 9381", () => {
  for (const vector of sswu) {
    const [key, alpha, pi] = bytes(vector);
    const h = encodeToCurve(concat(key, alpha), utf8("ECVRF_P256_XMD:SHA-256_SSWU_NU_\x02"));
    assert.equal(toHex(h.toBytes(true)), vector.H);
    assert.equal(toHex(verifyVrf(key, alpha, pi)!), vector.beta);
    assert.equal(toHex(vrfProofToHash(pi)!), vector.beta);
    // The prover in these tests is correct, too.
    assert.equal(toHex(prove(BigInt(`0x${vector.SK}`), alpha, BigInt(`0x${vector.k}`))), vector.pi);
  }
  assert.equal(sswu.length, 3);
});

test("proofs of another suite are refused", () => {
  for (const vector of tai) assert.equal(verifyVrf(...bytes(vector)), undefined);
  assert.ok(tai.length > 0);
});

test("proofs of the room of the vectors", () => {
  const { entries, draws, vrf_private_key } = fairness.room;
  const key = publicKey(BigInt(`0x${vrf_private_key}`));
  assert.ok(entries[0]!.includes(toHex(key)));
  for (const { window, alpha, beta } of draws) {
    const freeze = entries.find((entry) => entry.startsWith("freeze ") && entry.split(" ")[2] === `${window}`)!;
    assert.equal(toHex(verifyVrf(key, fromHex(alpha), fromHex(freeze.split(" ")[7]!))!), beta);
  }
  assert.ok(draws.length > 0);
});

test("random keys, inputs and nonces: one output for each input", () => {
  const random = new Random(3);
  for (let i = 0; i < 10; i++) {
    const secret = (BigInt(`0x${toHex(random.bytes(32))}`) % (order - 1n)) + 1n;
    const alpha = random.bytes(i * i * 7);
    const outputs = [1n, 2n, order - 1n, 12345n].map((k) =>
      verifyVrf(publicKey(secret), alpha, prove(secret, alpha, k)),
    );
    assert.ok(outputs[0]);
    for (const output of outputs) assert.deepEqual(output, outputs[0]);
  }
});

test("the nonce 0 gives the key away, and the proof is valid", () => {
  const alpha = utf8("sample");
  const proof = prove(7n, alpha, 0n);
  assert.deepEqual(verifyVrf(publicKey(7n), alpha, proof), verifyVrf(publicKey(7n), alpha, prove(7n, alpha, 5n)));
  assert.ok(vrfProofToHash(proof));
});

test("a flipped bit anywhere is refused", () => {
  const [key, alpha, pi] = bytes(sswu[0]!);
  let malformed = 0;
  for (let bit = 0; bit < 8 * pi.length; bit += 3) {
    const other = pi.slice();
    other[bit >> 3]! ^= 1 << (bit & 7);
    if (!vrfProofToHash(other)) malformed++;
    assert.equal(verifyVrf(key, alpha, other), undefined, `bit ${bit} of the proof`);
  }
  assert.ok(malformed > 20);
  for (let bit = 0; bit < 8 * key.length; bit += 5) {
    const other = key.slice();
    other[bit >> 3]! ^= 1 << (bit & 7);
    assert.equal(verifyVrf(other, alpha, pi), undefined, `bit ${bit} of the key`);
  }
  for (let bit = 0; bit < 8 * alpha.length; bit++) {
    const other = alpha.slice();
    other[bit >> 3]! ^= 1 << (bit & 7);
    assert.equal(verifyVrf(key, other, pi), undefined, `bit ${bit} of the input`);
  }
});

test("a proof has 81 bytes", () => {
  const [key, alpha, pi] = bytes(sswu[0]!);
  const long = concat(pi, new Uint8Array(40));
  for (let n = 0; n < long.length; n++) {
    if (n === proofSize) continue;
    assert.equal(verifyVrf(key, alpha, long.subarray(0, n)), undefined, `${n} bytes`);
    assert.equal(vrfProofToHash(long.subarray(0, n)), undefined, `${n} bytes`);
  }
});

/** Encodings that name a point, or look as if they did, and must be refused. */
function badPoints(): [string, Uint8Array][] {
  const point = p256.Point.BASE.multiply(5n);
  const { x, y } = point.toAffine();
  const bad: [string, Uint8Array][] = [
    ["empty", new Uint8Array(0)],
    ["identity", Uint8Array.of(0)],
    ["padded identity", new Uint8Array(33)],
    ["uncompressed", concat(Uint8Array.of(4), scalar(x), scalar(y))],
    ["hybrid", concat(Uint8Array.of(6 + Number(y & 1n)), scalar(x), scalar(y))],
    ["uncompressed, cut to 33 bytes", concat(Uint8Array.of(4), scalar(x))],
    ["truncated", point.toBytes(true).subarray(0, 32)],
    ["trailing byte", concat(point.toBytes(true), Uint8Array.of(0))],
    ["x = p", concat(Uint8Array.of(2), scalar(p))],
    ["x = 2^256-1", concat(Uint8Array.of(3), scalar(2n ** 256n - 1n))],
  ];
  for (let prefix = 0; prefix < 256; prefix++) {
    if (prefix !== 2 && prefix !== 3) bad.push([`prefix ${prefix}`, concat(Uint8Array.of(prefix), scalar(x))]);
  }
  for (let n = 0n; n < 30n; n++) {
    try {
      p256.Point.fromBytes(concat(Uint8Array.of(2), scalar(n)));
      for (const prefix of [2, 3]) bad.push([`x = p+${n}`, concat(Uint8Array.of(prefix), scalar(p + n))]);
    } catch {
      bad.push([`x = ${n}, not on the curve`, concat(Uint8Array.of(2), scalar(n))]);
    }
  }
  return bad;
}

test("a point has one encoding", () => {
  const [key, alpha, pi] = bytes(sswu[0]!);
  for (const [name, point] of badPoints()) {
    const proof = concat(point, pi.subarray(33));
    assert.equal(vrfProofToHash(proof), undefined, name);
    assert.equal(verifyVrf(key, alpha, proof), undefined, name);
    assert.equal(verifyVrf(point, alpha, pi), undefined, name);
  }
});

test("s is below the order, and c is anything", () => {
  const [key, alpha, pi] = bytes(sswu[0]!);
  for (const s of [order, order + 1n, 2n ** 256n - 1n]) {
    assert.equal(vrfProofToHash(concat(pi.subarray(0, 49), scalar(s))), undefined);
  }
  for (const s of [0n, 1n, order - 1n]) {
    const other = concat(pi.subarray(0, 49), scalar(s));
    assert.ok(vrfProofToHash(other));
    assert.equal(verifyVrf(key, alpha, other), undefined);
  }
  for (const c of [0x00, 0xff]) {
    const other = concat(pi.subarray(0, 33), new Uint8Array(16).fill(c), pi.subarray(49));
    assert.ok(vrfProofToHash(other));
    assert.equal(verifyVrf(key, alpha, other), undefined);
  }
});
