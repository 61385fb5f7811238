import assert from "node:assert/strict";
import { test } from "node:test";

import { Tree } from "../../src/audit/tree.ts";
import { toBase64 } from "../../src/check/base64.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { leafHash, rootOf } from "../../src/check/merkle.ts";
import { audit } from "../support/vectors.ts";

test("the root at every size up to 300 is the one of RFC 6962", () => {
  const leaves = Array.from({ length: 300 }, (_, i) => leafHash(utf8(`entry ${i}`)));
  const tree = new Tree();
  for (let size = 0; size < leaves.length; size++) {
    assert.equal(tree.size, BigInt(size));
    assert.deepEqual(tree.root(), rootOf(leaves.slice(0, size)));
    const next = tree.with(leaves[size]!);
    assert.deepEqual(next.root(), rootOf(leaves.slice(0, size + 1)));
    tree.append(leaves[size]!);
    assert.deepEqual(tree.root(), next.root());
  }
});

test("roots of the vectors", () => {
  for (const { size, root } of audit.roots) {
    const tree = new Tree();
    for (let i = 0; i < size; i++) tree.append(leafHash(utf8(`entry ${i}`)));
    assert.equal(toBase64(tree.root()), root);
  }
  assert.ok(audit.roots.length > 0);
});
