// Formats that all connectors of a site share.
import assert from "node:assert/strict";
import test from "node:test";
import { toBytes } from "../src/bytes.ts";
import { isUnqueued, noBind, noKey, noTicket, Signer } from "../src/session.ts";

const signer = new Signer(toBytes("0123456789abcdef0123456789abcdef"));

test("the client pseudonym of connector/rules/FORMAT.md", async () => {
  const name = (client: string, agent = "Mozilla/5.0") =>
    signer.clientOf("https://queue.example.com/r/sale", client, agent);
  assert.equal(await name("198.51.100.7"), "vfEqlNafQbCz2B71wOYCIw");
  assert.equal(await name("::ffff:198.51.100.250"), "vfEqlNafQbCz2B71wOYCIw");
  assert.equal(await name("2001:db8:1:ffff::1"), "IswYhhsbXmupm_v4fEEcPQ");
  assert.equal(
    new Set(await Promise.all([name("198.51.100.7"), name("198.51.101.7"), name("198.51.100.7", ""), name("", "")]))
      .size,
    4,
  );
});

test("an unqueued session in a cookie", async () => {
  const session = {
    room: "12345678",
    ticket: noTicket,
    pass: "0123456789abcdef",
    issued: 1,
    ends: 2,
    most: 5,
    length: 1,
    bind: noBind,
    key: noKey,
    token: "",
  };
  const text = await signer.format(session);
  const read = await signer.parse(text);
  assert.deepEqual(read, session);
  assert.ok(read && isUnqueued(read) && !isUnqueued({ ...read, ticket: "\x01".padStart(16, "\0") }));
});
