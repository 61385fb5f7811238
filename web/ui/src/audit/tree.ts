import { emptyRoot, type Hash, nodeHash } from "../check/merkle.ts";

/**
 * A growing Merkle tree of RFC 6962, section 2.1. It keeps only the roots of its
 * full subtrees from left to right: one for each bit that is set in the size, the
 * largest first.
 */
export class Tree {
  #size = 0; // leaves, below 2^53
  #subtrees: Hash[] = [];

  get size(): bigint {
    return BigInt(this.#size);
  }

  append(leaf: Hash): void {
    let hash = leaf;
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) hash = nodeHash(this.#subtrees.pop()!, hash);
    this.#subtrees.push(hash);
    this.#size++;
  }

  /** The tree with one more leaf; this one stays as it is. */
  with(leaf: Hash): Tree {
    const next = new Tree();
    next.#size = this.#size;
    next.#subtrees = [...this.#subtrees];
    next.append(leaf);
    return next;
  }

  root(): Hash {
    return this.#size === 0 ? emptyRoot : this.#subtrees.reduceRight((right, left) => nodeHash(left, right));
  }
}
