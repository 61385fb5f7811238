import { sha256 } from "@noble/hashes/sha2.js";

import { equal } from "./bytes.ts";

// The Merkle tree of RFC 6962, section 2.1, with SHA-256. Every function here
// is the RFC's definition by recursion: a tree of n > 1 leaves is split after
// the first k, k the largest power of two smaller than n.
// https://www.rfc-editor.org/rfc/rfc6962.html#section-2.1

/** A SHA-256 hash, 32 bytes. */
export type Hash = Uint8Array;

/** Leaves from the first index up to, not including, the second. */
export type Range = readonly [from: bigint, to: bigint];

export const hashSize = 32;

/** The most entries of a log that is read. */
export const maxSize = 1n << 60n;

/** The root of a tree without leaves. */
export const emptyRoot: Hash = sha256(new Uint8Array(0));

export function leafHash(entry: Uint8Array): Hash {
  return sha256.create().update(Uint8Array.of(0)).update(entry).digest();
}

export function nodeHash(left: Hash, right: Hash): Hash {
  return sha256.create().update(Uint8Array.of(1)).update(left).update(right).digest();
}

/** The root over leaf hashes. */
export function rootOf(leaves: readonly Hash[]): Hash {
  if (leaves.length === 0) return emptyRoot;
  const over = (from: number, to: number): Hash => {
    if (to - from === 1) return leaves[from]!;
    const middle = from + Number(split(BigInt(to - from)));
    return nodeHash(over(from, middle), over(middle, to));
  };
  return over(0, leaves.length);
}

/** k: the largest power of two smaller than n, for n > 1. */
function split(n: bigint): bigint {
  return 1n << BigInt((n - 1n).toString(2).length - 1);
}

/** The subtrees whose roots make the inclusion proof of a leaf: PATH(m, D[n]), the leaf's sibling first. */
export function inclusionRanges(index: bigint, size: bigint): Range[] {
  const path = (m: bigint, from: bigint, to: bigint): Range[] => {
    if (to - from <= 1n) return [];
    const middle = from + split(to - from);
    return m < middle ? [...path(m, from, middle), [middle, to]] : [...path(m, middle, to), [from, middle]];
  };
  return path(index, 0n, size);
}

/** Reports whether a path leads from the leaf at an index to the root of a tree of that size. */
export function verifyInclusion(index: bigint, leaf: Hash, size: bigint, root: Hash, path: readonly Hash[]): boolean {
  if (index < 0n || index >= size || size > maxSize) return false;
  const rest = [...path];
  const climb = (m: bigint, n: bigint): Hash | undefined => {
    if (n === 1n) return leaf;
    const k = split(n);
    const sibling = rest.pop(); // the root's child is last
    const own = m < k ? climb(m, k) : climb(m - k, n - k);
    if (!sibling || !own) return undefined;
    return m < k ? nodeHash(own, sibling) : nodeHash(sibling, own);
  };
  const reached = climb(index, size);
  return rest.length === 0 && reached !== undefined && equal(reached, root);
}

/**
 * The root of the tree that ends with a leaf, computed from the leaf's proven path
 * in a larger tree: the siblings on its left cover all earlier leaves.
 */
export function rootEndingWith(index: bigint, leaf: Hash, size: bigint, path: readonly Hash[]): Hash {
  const isRight = (m: bigint, n: bigint): boolean[] => {
    if (n === 1n) return [];
    const k = split(n);
    return m < k ? [...isRight(m, k), false] : [...isRight(m - k, n - k), true];
  };
  const sides = isRight(index, size);
  return path.reduce((below, sibling, i) => (sides[i] ? nodeHash(sibling, below) : below), leaf);
}

/** The subtrees whose roots make the consistency proof of a tree's first m leaves: PROOF(m, D[n]). */
export function consistencyRanges(old: bigint, size: bigint): Range[] {
  const subproof = (m: bigint, from: bigint, to: bigint, known: boolean): Range[] => {
    if (m === to) return known ? [] : [[from, to]];
    const middle = from + split(to - from);
    return m <= middle
      ? [...subproof(m, from, middle, known), [middle, to]]
      : [...subproof(m, middle, to, false), [from, middle]];
  };
  return old === 0n ? [] : subproof(old, 0n, size, true);
}

/**
 * Reports whether the proof shows that the first leaves of a tree are those of
 * the older, smaller one. From the empty tree, or between equal sizes, the
 * proof is empty.
 */
export function verifyConsistency(
  old: { size: bigint; root: Hash },
  head: { size: bigint; root: Hash },
  proof: readonly Hash[],
): boolean {
  if (old.size < 0n || old.size > head.size || head.size > maxSize) return false;
  if (head.size === 0n && !equal(head.root, emptyRoot)) return false;
  if (old.size === 0n) return proof.length === 0 && equal(old.root, emptyRoot);
  const rest = [...proof];
  // Returns the roots of the old and of the new part of a subtree.
  const climb = (m: bigint, n: bigint, known: boolean): [Hash, Hash] | undefined => {
    if (m === n) {
      const both = known ? old.root : rest.pop();
      return both && [both, both];
    }
    const k = split(n);
    const sibling = rest.pop();
    const below = m <= k ? climb(m, k, known) : climb(m - k, n - k, false);
    if (!sibling || !below) return undefined;
    return m <= k
      ? [below[0], nodeHash(below[1], sibling)]
      : [nodeHash(sibling, below[0]), nodeHash(sibling, below[1])];
  };
  const reached = climb(old.size, head.size, true);
  return rest.length === 0 && reached !== undefined && equal(reached[0], old.root) && equal(reached[1], head.root);
}

/**
 * The largest subtrees outside a run of leaves, from left to right. Their
 * roots prove the run, and that nothing is missing inside it; RFC 6962 has
 * no name for this proof.
 */
export function runRanges(run: Range, size: bigint): Range[] {
  const outside = (from: bigint, to: bigint): Range[] => {
    if (to <= run[0] || from >= run[1]) return [[from, to]];
    if (run[0] <= from && to <= run[1]) return [];
    const middle = from + split(to - from);
    return [...outside(from, middle), ...outside(middle, to)];
  };
  return outside(0n, size);
}

/** Reports whether these leaves, without gaps, begin at an index of the tree. */
export function verifyRun(
  first: bigint,
  leaves: readonly Hash[],
  size: bigint,
  root: Hash,
  proof: readonly Hash[],
): boolean {
  const end = first + BigInt(leaves.length);
  if (leaves.length === 0 || first < 0n || end > size || size > maxSize) return false;
  let used = 0;
  const over = (from: bigint, to: bigint): Hash | undefined => {
    if (to <= first || from >= end) return proof[used++];
    if (to - from === 1n) return leaves[Number(from - first)];
    const middle = from + split(to - from);
    const left = over(from, middle);
    const right = over(middle, to);
    return left && right && nodeHash(left, right);
  };
  const reached = over(0n, size);
  return used === proof.length && reached !== undefined && equal(reached, root);
}
