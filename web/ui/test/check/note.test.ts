import assert from "node:assert/strict";
import { test } from "node:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";

import { toBase64 } from "../../src/check/base64.ts";
import { concat, utf8 } from "../../src/check/bytes.ts";
import { formatCheckpoint, openCheckpoint, parseCheckpoint } from "../../src/check/checkpoint.ts";
import { verifyEd25519 } from "../../src/check/ed25519.ts";
import { FormatError, SignatureError } from "../../src/check/errors.ts";
import { fromHex } from "../../src/check/hex.ts";
import { emptyRoot } from "../../src/check/merkle.ts";
import { openNote, parseKey, parseNote } from "../../src/check/note.ts";
import { mangled } from "../support/random.ts";
import { Operator } from "../support/room.ts";
import { audit } from "../support/vectors.ts";

const key = parseKey(audit.vkey);
const refused = (failure: unknown): boolean => failure instanceof FormatError || failure instanceof SignatureError;

test("checkpoints of the vectors open", () => {
  assert.equal(key.name, audit.origin);
  for (const { size, text, signed } of audit.checkpoints) {
    const head = openCheckpoint(utf8(signed), key);
    assert.equal(head.origin, audit.origin);
    assert.equal(head.size, BigInt(size));
    assert.equal(toBase64(head.root), audit.roots.find((root) => root.size === size)!.root);
    assert.equal(formatCheckpoint(head), text);
  }
  assert.ok(audit.checkpoints.length > 0);
});

test("refused checkpoints of the vectors", () => {
  for (const text of audit.refused.checkpoints) assert.throws(() => parseCheckpoint(text), FormatError, text);
  assert.ok(audit.refused.checkpoints.length > 0);
});

test("parsed checkpoints are written the same way", () => {
  for (const { text } of audit.checkpoints) {
    for (const other of mangled(utf8(text))) {
      const changed = Buffer.from(other).toString();
      try {
        assert.equal(formatCheckpoint(parseCheckpoint(changed)), changed);
      } catch (failure) {
        assert.ok(failure instanceof FormatError, changed);
      }
    }
  }
});

test("a mangled signed checkpoint is refused", () => {
  const signed = utf8(audit.checkpoints[2]!.signed);
  let tried = 0;
  for (const other of mangled(signed)) {
    if (Buffer.compare(other, signed) === 0) continue;
    assert.throws(() => openCheckpoint(other, key), refused, Buffer.from(other).toString());
    tried++;
  }
  assert.ok(tried > 500);
});

test("a mangled verifier key is refused", () => {
  for (const other of mangled(utf8(audit.vkey))) {
    const changed = Buffer.from(other).toString("latin1");
    if (changed !== audit.vkey) assert.throws(() => parseKey(changed), FormatError, changed);
  }
  const [origin, id, typed] = audit.vkey.split("+", 2).concat(audit.vkey.split("+").slice(2).join("+"));
  for (const bad of ["", "+", "++", `${origin}+${id}`, `${origin}+${id!.toUpperCase()}+${typed}`, `+${id}+${typed}`]) {
    assert.throws(() => parseKey(bad), FormatError, bad);
  }
});

const text = audit.checkpoints[2]!.text;
const own = audit.checkpoints[2]!.signed.slice(text.length + 1);
const note = (...lines: string[]): Uint8Array => utf8(`${text}\n${lines.join("")}`);
const witness = new Operator("witness.example.com", "witness");
const wrong = witness.signatureLine("other text\n");

test("signatures of other keys are ignored", () => {
  assert.equal(openNote(note(own, wrong), key), text);
  assert.equal(openNote(note(wrong, own), key), text);
  assert.throws(() => openNote(note(wrong), key), SignatureError);
  // The same name with another id, and the same id with another name, are different keys.
  const sameName = new Operator(audit.origin, "another").signatureLine(text);
  const sameId = own.replace(audit.origin, "example.com/r/other");
  assert.equal(openNote(note(sameName, own, sameId), key), text);
  assert.throws(() => openNote(note(sameName, sameId), key), SignatureError);
});

test("a second signature by the key spoils the first, right or wrong", () => {
  const operator = new Operator(audit.origin, "", fromHex(audit.seed));
  assert.equal(operator.vkey, audit.vkey);
  const bad = operator.signatureLine("other text\n");
  assert.throws(() => openNote(note(own, bad), key), SignatureError);
  assert.throws(() => openNote(note(bad, own), key), SignatureError);
  assert.throws(() => openNote(note(own, own), key), SignatureError);
});

test("a signed text of another log is refused", () => {
  const operator = new Operator(audit.origin, "", fromHex(audit.seed));
  const other = formatCheckpoint({ origin: "example.com/r/other", size: 0n, root: emptyRoot });
  assert.throws(() => openCheckpoint(operator.sign(other), key), SignatureError);
});

test("malformed notes are refused", () => {
  const dash = "\u2014";
  for (const bad of [
    "",
    "\n\n",
    text,
    `${text}\n`,
    `${text}\n${own.trimEnd()}`,
    `${text}\n${own}\n`,
    `${text}${own}`,
    `${text}\n${own.replace(dash, "-")}`,
    `${text}\n${own.replace(dash, `${dash} `)}`,
    `${text}\n${own}junk\n`,
    `${text}\n${own}${dash} name AAAAAA==\n`, // four bytes: an id without a signature
    `${text}\n${own}${dash} na+me AAAAAAA=\n`,
    `${text}\n${own}${dash} na\u00a0me AAAAAAA=\n`,
    `${text}\n${own}${dash} name AAAAAAB=\n`, // unused bits set
    `${text}\n${own}${dash} name  AAAAAAA=\n`,
    `${text}\r\n\n${own}`,
    `${text}\u0000\n\n${own}`,
    `${text}\n${own.repeat(101)}`,
  ]) {
    assert.throws(() => openNote(utf8(bad), key), refused, bad.slice(0, 300));
  }
  assert.throws(() => parseNote(concat(utf8(`${text}\n${own}`), Uint8Array.of(0xff, 0x0a))), FormatError);
  const others = Array<string>(99).fill(`${dash} name AAAAAAA=\n`);
  assert.equal(openNote(note(own, ...others), key), text);
});

// https://www.rfc-editor.org/rfc/rfc8032.html#section-7.1, test 3
const rfc = {
  publicKey: fromHex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"),
  message: fromHex("af82"),
  signature: fromHex(
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
  ),
};

test("Ed25519 of RFC 8032", () => {
  assert.ok(verifyEd25519(rfc.publicKey, rfc.message, rfc.signature));
  for (let i = 0; i < 64; i++) {
    const signature = rfc.signature.slice();
    signature[i]! ^= 1 << (i % 8);
    assert.ok(!verifyEd25519(rfc.publicKey, rfc.message, signature), `byte ${i}`);
  }
  assert.ok(!verifyEd25519(rfc.publicKey, fromHex("af83"), rfc.signature));
  assert.ok(!verifyEd25519(rfc.publicKey.subarray(1), rfc.message, rfc.signature));
  assert.ok(!verifyEd25519(rfc.publicKey, rfc.message, rfc.signature.subarray(1)));
});

const { Point } = ed25519;
const littleEndian = (value: bigint): Uint8Array =>
  Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 0xffn));
const integer = (bytes: Uint8Array): bigint => bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);

test("an Ed25519 signature has one S", () => {
  const s = integer(rfc.signature.subarray(32)) + Point.Fn.ORDER;
  assert.ok(!verifyEd25519(rfc.publicKey, rfc.message, concat(rfc.signature.subarray(0, 32), littleEndian(s))));
});

test("an Ed25519 signature that needs the cofactor is refused, as the Go verifier refuses it", () => {
  // R' = R + T with T of order 8: 8 times both sides are equal, but the sides are not.
  const torsion = Point.fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
  assert.ok(torsion.isSmallOrder());
  const [a, r] = [12345n, 67890n];
  const publicKey = Point.BASE.multiply(a).toBytes();
  const bigR = Point.BASE.multiply(r).add(torsion).toBytes();
  const k = integer(sha512(concat(bigR, publicKey, rfc.message))) % Point.Fn.ORDER;
  const signature = concat(bigR, littleEndian((r + k * a) % Point.Fn.ORDER));
  assert.ok(ed25519.verify(signature, rfc.message, publicKey), "noble multiplies by the cofactor");
  assert.ok(!verifyEd25519(publicKey, rfc.message, signature));
});
