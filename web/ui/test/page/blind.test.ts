import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";

import { verifyBlind } from "../../src/audit/credential.ts";
import { integer, powerOf65537 } from "../../src/audit/rsa.ts";
import { messageOf } from "../../src/audit/subject.ts";
import { fromHex } from "../../src/check/hex.ts";
import { uuidBytes } from "../../src/check/uuid.ts";
import { blind, unblind } from "../../src/page/blind.ts";
import { signatureOf } from "../../src/page/confirmation.ts";
import { rfc9474 } from "../support/vectors.ts";

// Key of the examples of RFC 9474, whose modulus has 4096 bits.
const [example] = rfc9474.vectors;
const key = example!.n;
const wish = {
  ticket: "cda3f665-387e-8031-a3d9-8534adbd7fa3",
  lane: "general",
  method: "phone",
  key,
  entry: "3f".repeat(32),
};

test("a blinded message is random, smaller than the modulus, and hides the message", () => {
  const [one, two] = [blind(wish), blind(wish)];
  assert.notEqual(one.message, two.message);
  for (const { message, factor } of [one, two]) {
    assert.equal(message.length, key.length);
    assert.ok(integer(fromHex(message)) < integer(fromHex(key)));
    // factor^-1 raised to e times the encoded message is the blinded message
    const unhidden =
      (integer(fromHex(message)) * integer(powerOf65537(fromHex(factor), fromHex(key)))) % integer(fromHex(key));
    const again =
      (integer(fromHex(two.message)) * integer(powerOf65537(fromHex(two.factor), fromHex(key)))) %
      integer(fromHex(key));
    assert.equal(unhidden, again);
  }
});

test("a signature of something else is of no use", () => {
  const { factor } = blind(wish);
  assert.equal(unblind(wish, factor, "01".repeat(key.length / 2)), undefined);
  assert.throws(() => unblind(wish, factor, "01"));
});

test("an issuer's signature of a blinded message is good for the ticket alone", () => {
  const { n, d } = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
  const [modulus, secret] = [n!, d!].map((text) => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`));
  const made = { ...wish, key: modulus!.toString(16) };
  const { message, factor } = blind(made);
  const signature = power(BigInt(`0x${message}`), secret!, modulus!)
    .toString(16)
    .padStart(512, "0");
  const evidence = unblind(made, factor, signature);
  assert.ok(evidence);
  const subject = {
    room: fromHex(made.entry),
    lane: made.lane,
    ticket: uuidBytes(made.ticket),
    round: new Uint8Array(),
  };
  const signed = messageOf(subject, made.method, new Uint8Array());
  assert.ok(verifyBlind(fromHex(made.key), signed, fromHex(evidence)));
  assert.equal(unblind({ ...made, lane: "other" }, factor, signature), undefined);
  assert.equal(unblind(made, blind(made).factor, signature), undefined);
});

function power(base: bigint, exponent: bigint, n: bigint): bigint {
  let result = 1n;
  for (let square = base, rest = exponent; rest > 0n; square = (square * square) % n, rest >>= 1n) {
    if (rest & 1n) result = (result * square) % n;
  }
  return result;
}

test("the fragment of a return", () => {
  const hex = "ab".repeat(256);
  assert.deepEqual(signatureOf(`#blind_signature=phone+${hex}`), { method: "phone", signature: hex });
  for (const hash of [
    "",
    "#k=x",
    `#blind_signature=phone`,
    `#blind_signature=Phone+${hex}`,
    "#blind_signature=phone+ab",
  ]) {
    assert.equal(signatureOf(hash), undefined);
  }
});
