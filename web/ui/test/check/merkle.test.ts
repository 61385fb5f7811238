import assert from "node:assert/strict";
import { test } from "node:test";

import { fromBase64, toBase64 } from "../../src/check/base64.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { fromHex } from "../../src/check/hex.ts";
import {
  consistencyRanges,
  emptyRoot,
  type Hash,
  inclusionRanges,
  leafHash,
  nodeHash,
  type Range,
  rootEndingWith,
  rootOf,
  runRanges,
  verifyConsistency,
  verifyInclusion,
  verifyRun,
} from "../../src/check/merkle.ts";
import { audit } from "../support/vectors.ts";

const entry = (i: number): Uint8Array => utf8(`entry ${i}`);
const all = Array.from({ length: 70_000 }, (_, i) => leafHash(entry(i)));
const root = (size: number): Hash => rootOf(all.slice(0, size));
const roots = (ranges: Range[]): Hash[] => ranges.map(([a, b]) => rootOf(all.slice(Number(a), Number(b))));

test("leaves and roots of the vectors", () => {
  for (const { entry, hash } of audit.leaves) assert.equal(toBase64(leafHash(fromHex(entry))), hash);
  for (const { size, root: want } of audit.roots) assert.equal(toBase64(root(size)), want, `${size}`);
  assert.equal(toBase64(emptyRoot), audit.roots[0]!.root);
});

test("proofs of the vectors", () => {
  for (const { index, size, path } of audit.inclusion) {
    const [i, n, hashes] = [BigInt(index), BigInt(size), path.map(fromBase64)];
    assert.ok(verifyInclusion(i, all[index]!, n, root(size), hashes), `${index} of ${size}`);
    assert.deepEqual(roots(inclusionRanges(i, n)), hashes);
  }
  for (const { old, size, path } of audit.consistency) {
    const hashes = path.map(fromBase64);
    const [from, to] = [old, size].map((n) => ({ size: BigInt(n), root: root(n) }));
    assert.ok(verifyConsistency(from!, to!, hashes), `${old} to ${size}`);
    assert.deepEqual(roots(consistencyRanges(BigInt(old), BigInt(size))), hashes);
  }
});

test("the path of a leaf gives the root of the tree that ends with it", () => {
  for (let size = 1; size <= 40; size++) {
    for (let index = 0; index < size; index++) {
      const path = roots(inclusionRanges(BigInt(index), BigInt(size)));
      assert.deepEqual(
        rootEndingWith(BigInt(index), all[index]!, BigInt(size), path),
        root(index + 1),
        `${index} of ${size}`,
      );
    }
  }
  const path = roots(inclusionRanges(65_535n, 70_000n));
  assert.deepEqual(rootEndingWith(65_535n, all[65_535]!, 70_000n, path), root(65_536));
});

/** Every list that differs by one small change. */
function* otherLists(path: Hash[]): Generator<Hash[]> {
  for (let i = 0; i < path.length; i++) {
    const changed = path.slice();
    changed[i] = path[i]!.slice();
    changed[i]![31]! ^= 1;
    yield changed;
    yield [...path.slice(0, i), ...path.slice(i + 1)];
    yield [...path.slice(0, i), path[i]!, ...path.slice(i)];
  }
  yield [...path, emptyRoot];
  yield [emptyRoot, ...path];
}

test("inclusion: every leaf of every small tree, and nothing else", () => {
  for (let size = 1; size <= 33; size++) {
    const head = root(size);
    for (let index = 0; index < size; index++) {
      const path = roots(inclusionRanges(BigInt(index), BigInt(size)));
      const verify = (i: number, leaf: Hash, n: number, p: Hash[]): boolean =>
        verifyInclusion(BigInt(i), leaf, BigInt(n), head, p);
      assert.ok(verify(index, all[index]!, size, path), `${index} of ${size}`);
      for (const other of otherLists(path)) assert.ok(!verify(index, all[index]!, size, other), `${index} of ${size}`);
      for (let i = -1; i <= size; i++) {
        if (i !== index) assert.ok(!verify(i, all[index]!, size, path), `${index} as ${i} of ${size}`);
      }
      assert.ok(!verify(index, all[index + 1]!, size, path));
    }
  }
});

test("inclusion: another size of the same shape is another tree", () => {
  // The path of an index may have the same form in trees of other sizes; the root decides.
  const path = roots(inclusionRanges(2n, 7n));
  for (let size = 1n; size < 40n; size++) {
    assert.equal(verifyInclusion(2n, all[2]!, size, root(7), path), [5n, 6n, 7n, 8n].includes(size), `${size}`);
  }
});

test("consistency: every pair of small trees, and nothing else", () => {
  for (let size = 0; size <= 20; size++) {
    const head = { size: BigInt(size), root: root(size) };
    for (let old = 0; old <= size; old++) {
      const from = { size: BigInt(old), root: root(old) };
      const proof = roots(consistencyRanges(BigInt(old), BigInt(size)));
      assert.ok(verifyConsistency(from, head, proof), `${old} to ${size}`);
      for (const other of otherLists(proof)) assert.ok(!verifyConsistency(from, head, other), `${old} to ${size}`);
      const foreign = { size: from.size, root: leafHash(from.root) };
      assert.ok(!verifyConsistency(foreign, head, proof), `${old} to ${size}`);
      assert.ok(!verifyConsistency(from, { ...head, root: foreign.root }, proof) || (old === 0 && size > 0));
      if (old < size) assert.ok(!verifyConsistency(head, from, proof), `${size} to ${old}`);
    }
  }
});

test("runs: every run of every small tree, and nothing else", () => {
  for (let size = 1; size <= 17; size++) {
    const head = root(size);
    for (let from = 0; from < size; from++) {
      for (let to = from + 1; to <= size; to++) {
        const proof = roots(runRanges([BigInt(from), BigInt(to)], BigInt(size)));
        const run = all.slice(from, to);
        const verify = (first: number, leaves: Hash[], p: Hash[]): boolean =>
          verifyRun(BigInt(first), leaves, BigInt(size), head, p);
        assert.ok(verify(from, run, proof), `${from} to ${to} of ${size}`);
        for (const other of otherLists(proof)) assert.ok(!verify(from, run, other));
        for (const other of otherLists(run)) assert.ok(!verify(from, other, proof));
        assert.ok(!verify(from + 1, run, proof));
        assert.ok(!verify(from - 1, run, proof));
      }
    }
  }
  assert.ok(!verifyRun(0n, [], 1n, root(1), [root(1)]));
});

test("absurd sizes are refused at once", () => {
  const big = 1n << 60n;
  assert.ok(!verifyInclusion(0n, all[0]!, big + 1n, root(1), []));
  assert.ok(!verifyInclusion(0n, all[0]!, big, root(1), []));
  assert.ok(!verifyConsistency({ size: 1n, root: root(1) }, { size: big + 1n, root: root(1) }, []));
  assert.ok(!verifyRun(0n, [all[0]!], big + 1n, root(1), []));
  assert.equal(inclusionRanges(big - 1n, big).length, 60);
});

test("a node is not a leaf", () => {
  assert.notDeepEqual(nodeHash(all[0]!, all[1]!), leafHash(Uint8Array.from([...all[0]!, ...all[1]!])));
});
