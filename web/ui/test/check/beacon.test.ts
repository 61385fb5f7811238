import assert from "node:assert/strict";
import { test } from "node:test";
import { bls12_381 } from "@noble/curves/bls12-381.js";

import { chainHash, isBeaconKey, quicknet, roundAfter, roundTime, verifyRound } from "../../src/check/beacon.ts";
import type { Beacon } from "../../src/check/entry.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { Chain } from "../support/beacon.ts";
import { drand } from "../support/vectors.ts";

const chains = drand.chains.map(
  ({ chain_hash: hash, public_key: key, seed: group, beacon_id: id, genesis, period_seconds: period, rounds }) => {
    const beacon: Beacon = {
      id,
      key: fromHex(key),
      genesis: BigInt(genesis),
      period,
      group: fromHex(group),
      margin: 2000,
    };
    return {
      hash,
      beacon,
      rounds: rounds.map(({ round, signature }) => ({ round: BigInt(round), signature: fromHex(signature) })),
    };
  },
);
const { beacon, rounds } = chains[0]!;

test("public chains have their published hashes", () => {
  for (const { hash, beacon } of chains) assert.equal(chainHash(beacon), hash);
  assert.equal(chains[0]!.hash, quicknet);
  assert.equal(chainHash({ ...beacon, id: "default" }), chainHash({ ...beacon, id: "" }));
  const changes: Partial<Beacon>[] = [
    { id: "quicknet2" },
    { genesis: 1n },
    { period: 4 },
    { group: new Uint8Array(32) },
    { key: chains[1]!.beacon.key },
  ];
  for (const change of changes) assert.notEqual(chainHash({ ...beacon, ...change }), quicknet);
  assert.equal(chainHash({ ...beacon, margin: 1 }), quicknet); // a room's own beacon
});

test("published rounds verify, and are of one round of one chain", () => {
  for (const { beacon, rounds } of chains) {
    for (const { round, signature } of rounds) {
      assert.equal(verifyRound(beacon, round, signature), true);
      assert.equal(verifyRound(beacon, round + 1n, signature), false);
      assert.equal(verifyRound({ ...beacon, key: new Chain("x", 1n).beacon.key }, round, signature), false);
    }
  }
});

test("a signature with any bit changed is invalid", () => {
  const { round, signature } = rounds[0]!;
  for (let bit = 0; bit < 8 * signature.length; bit += bit < 8 ? 1 : 13) {
    const bad = signature.slice();
    bad[bit >> 3]! ^= 0x80 >> (bit & 7);
    assert.equal(verifyRound(beacon, round, bad), false, `bit ${bit}`);
  }
});

test("signatures have one encoding", () => {
  const { round, signature } = rounds[0]!;
  const point = bls12_381.G1.Point.fromBytes(signature);
  const bad: [string, Uint8Array][] = [
    ["none", new Uint8Array(0)],
    ["too short", signature.subarray(1)],
    ["too long", Uint8Array.from([...signature, 0])],
    ["not compressed", point.toBytes(false)],
    ["the other sign", point.negate().toBytes(true)],
    ["the identity", Uint8Array.from({ length: 48 }, (_, i) => (i === 0 ? 0xc0 : 0))],
    ["of order 3", Uint8Array.from({ length: 48 }, (_, i) => (i === 0 ? 0x80 : 0))],
    ["above the prime", Uint8Array.from({ length: 48 }, (_, i) => (i === 0 ? 0x9f : 0xff))],
  ];
  for (const [name, bytes] of bad) assert.equal(verifyRound(beacon, round, bytes), false, name);
});

test("keys have one encoding, and are in the subgroup", () => {
  for (const { beacon } of chains) assert.equal(isBeaconKey(beacon.key), true);
  const point = bls12_381.G2.Point.fromBytes(beacon.key);
  const bad: [string, Uint8Array][] = [
    ["none", new Uint8Array(0)],
    ["zeros", new Uint8Array(96)],
    ["too short", beacon.key.subarray(1)],
    ["a signature", rounds[0]!.signature],
    ["not compressed", point.toBytes(false)],
    ["the identity", Uint8Array.from({ length: 96 }, (_, i) => (i === 0 ? 0xc0 : 0))],
    ["above the prime", Uint8Array.from({ length: 96 }, (_, i) => (i === 0 ? 0x9f : 0xff))],
  ];
  for (const [name, bytes] of bad) assert.equal(isBeaconKey(bytes), false, name);
  // Most points of the curve are outside the subgroup; these are on the curve.
  const { Fp2 } = bls12_381.fields;
  let outside = 0;
  for (let x = 1n; x <= 20n; x++) {
    const square = Fp2.add(Fp2.create({ c0: x ** 3n, c1: 0n }), Fp2.create({ c0: 4n, c1: 4n }));
    const isOnCurve = attempt(() => Fp2.sqrt(square));
    const key = fromHex(x.toString(16).padStart(192, "0"));
    key[0]! |= 0x80;
    assert.equal(isBeaconKey(key), false, `${x}`);
    if (isOnCurve) outside++;
  }
  assert.ok(outside > 3, `${outside}`);
});

function attempt(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}

test("a round is the first that appears after the margin", () => {
  const chain = { ...beacon, genesis: 1000n, margin: 2000 };
  for (let frozen = 990_000; frozen < 1_020_000; frozen += 250) {
    const round = roundAfter(chain, frozen);
    const end = BigInt(frozen + chain.margin);
    assert.ok(roundTime(chain, round) > end, `${frozen}`);
    assert.ok(round === 1n || roundTime(chain, round - 1n) <= end, `${frozen}`);
  }
  assert.equal(roundAfter(chain, 0), 1n);
  assert.equal(roundAfter(chain, 997_999), 1n);
  assert.equal(roundAfter(chain, 998_000), 2n);
  assert.equal(
    roundAfter({ ...chain, genesis: 2n ** 42n, period: 2_678_400 }, 2 ** 53 - 2),
    roundAfter({ ...chain, genesis: 0n, period: 2_678_400 }, 2 ** 53 - 2 - 1000 * 2 ** 42),
  );
  assert.equal(roundTime(chain, 2n ** 63n - 1n), 1000n * (1000n + 3n * (2n ** 63n - 2n)));
});

test("rounds of a private chain", () => {
  const own = new Chain("own", 0n);
  assert.equal(verifyRound(own.beacon, 7n, own.sign(7n)), true);
  assert.equal(verifyRound(own.beacon, 8n, own.sign(7n)), false);
  assert.equal(isBeaconKey(own.beacon.key), true);
  assert.notEqual(toHex(own.beacon.key), toHex(new Chain("other", 0n).beacon.key));
});
