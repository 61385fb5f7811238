import assert from "node:assert/strict";
import { test } from "node:test";

import { utf8 } from "../../src/check/bytes.ts";
import { openCheckpoint } from "../../src/check/checkpoint.ts";
import { FormatError, SignatureError } from "../../src/check/errors.ts";
import { fromHex } from "../../src/check/hex.ts";
import { leafHash, verifyInclusion } from "../../src/check/merkle.ts";
import { parseKey } from "../../src/check/note.ts";
import { formatProof, parseProof } from "../../src/check/proof.ts";
import { mangled } from "../support/random.ts";
import { audit } from "../support/vectors.ts";

const key = parseKey(audit.vkey);

function verify(bytes: Uint8Array, entry: string): boolean {
  const proof = parseProof(bytes);
  const head = openCheckpoint(utf8(proof.checkpoint), key);
  return verifyInclusion(proof.index, leafHash(utf8(entry)), head.size, head.root, proof.path);
}

test("proofs of the vectors", () => {
  for (const { index, size, extra, text } of audit.proofs) {
    const proof = parseProof(utf8(text));
    assert.equal(proof.index, BigInt(index));
    assert.deepEqual(proof.extra, fromHex(extra));
    assert.equal(formatProof(proof), text);
    assert.equal(openCheckpoint(utf8(proof.checkpoint), key).size, BigInt(size));
    assert.ok(verify(utf8(text), `entry ${index}`));
    assert.ok(!verify(utf8(text), `entry ${index + 1}`));
  }
  assert.ok(audit.proofs.length > 0);
});

test("refused proofs of the vectors", () => {
  for (const text of audit.refused.proofs) assert.throws(() => parseProof(utf8(text)), FormatError, text);
  assert.ok(audit.refused.proofs.length > 0);
});

test("a mangled proof is refused, but for its extra data", () => {
  const { text, index } = audit.proofs[2]!;
  const extra = parseProof(utf8(text)).extra;
  let tried = 0;
  for (const other of mangled(utf8(text))) {
    const changed = Buffer.from(other).toString();
    if (changed === text) continue;
    tried++;
    try {
      assert.ok(!verify(other, `entry ${index}`) || !Buffer.from(parseProof(other).extra).equals(extra), changed);
    } catch (failure) {
      assert.ok(failure instanceof FormatError || failure instanceof SignatureError, changed);
    }
  }
  assert.ok(tried > 1000);
});
