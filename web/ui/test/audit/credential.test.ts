import assert from "node:assert/strict";
import { test } from "node:test";

import { Verifier, verifyBlind } from "../../src/audit/credential.ts";
import { messageOf } from "../../src/audit/subject.ts";
import { FormatError } from "../../src/check/errors.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { parseCredential, parseMethod } from "../../src/check/method.ts";
import { type CredentialVectors, credentials, rfc9474 } from "../support/vectors.ts";

const subjectOf = (vector: CredentialVectors["messages"][number]["subject"]) => ({
  room: fromHex(vector.room),
  lane: vector.lane,
  ticket: fromHex(vector.ticket),
  round: fromHex(vector.round),
});

/** The verdict of the vectors. */
function judge({ method, subject, credential }: CredentialVectors["credentials"][number]): string {
  const verifier = new Verifier(parseMethod(method));
  const fields = credential.split(" ");
  try {
    if (fields.length !== 3) throw new FormatError("not three fields");
    const [name, nullifier, evidence] = fields as [string, string, string];
    const fault = verifier.fault(subjectOf(subject), parseCredential(name, nullifier, evidence));
    return fault === "method" ? "syntax" : (fault ?? "accepted");
  } catch (failure) {
    assert.ok(failure instanceof FormatError);
    return "syntax";
  }
}

test("messages", () => {
  for (const { subject, method, nullifier, message } of credentials.messages) {
    assert.equal(toHex(messageOf(subjectOf(subject), method, fromHex(nullifier))), message);
  }
  assert.ok(credentials.messages.length > 0);
});

test("methods of policies", () => {
  for (const { about, method, verdict } of credentials.methods) {
    const make = () => new Verifier(parseMethod(method));
    if (verdict === "accepted") make();
    else assert.throws(make, FormatError, `${about}: ${method}`);
  }
  assert.ok(credentials.methods.length > 40);
});

test("credentials, forged and malformed ones included", () => {
  for (const vector of credentials.credentials) {
    assert.equal(judge(vector), vector.verdict, `${vector.about}: ${vector.method}`);
  }
  assert.ok(credentials.credentials.length > 50);
});

test("examples of RFC 9474: those with a salt are other schemes", () => {
  for (const { variant, n, message, signature, accepted } of rfc9474.vectors) {
    assert.equal(verifyBlind(fromHex(n), fromHex(message), fromHex(signature)), accepted, variant);
  }
  assert.equal(rfc9474.vectors.length, 4);
});
