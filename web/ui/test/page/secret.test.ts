import assert from "node:assert/strict";
import { test } from "node:test";

import { exclusive, fragmentOf, hashOf, isOwn, makeSecret, stateOf } from "../../src/page/secret.ts";
import { settle } from "./timers.ts";

test("secrets are 32 bytes in base64url, and never the same", () => {
  const secrets = Array.from({ length: 100 }, makeSecret);
  for (const secret of secrets) {
    assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(Buffer.from(secret, "base64url").length, 32);
    assert.equal(Buffer.from(secret, "base64url").toString("base64url"), secret);
  }
  assert.equal(new Set(secrets).size, secrets.length);
});

test("the fragment of an address", () => {
  const secret = makeSecret();
  assert.deepEqual(fragmentOf(hashOf(secret)), { secret });
  const code = secret.slice(0, 22);
  assert.deepEqual(fragmentOf(`#t=${code}`), { code });
  for (const other of [
    "",
    "#",
    `#k=${secret}x`,
    `#k=${secret.slice(1)}`,
    `#K=${secret}`,
    `#k=${secret.slice(1)}+`,
    `#t=${code}x`,
    `#t=${code.slice(1)}`,
    `#t=${secret}`,
  ]) {
    assert.deepEqual(fragmentOf(other), {}, other);
  }
});

test("an address counts as this browser's own by the state of its history entry alone", () => {
  const secret = makeSecret();
  assert.equal(isOwn(secret, stateOf(secret)), true);
  for (const state of [null, undefined, secret, {}, stateOf(makeSecret())]) assert.equal(isOwn(secret, state), false);
});

/** Locks as browsers have them, for one name. */
class FakeLocks {
  #last: Promise<unknown> = Promise.resolve();

  request(_name: string, act: () => Promise<unknown>): Promise<unknown> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

test("two tabs act one after the other", async () => {
  const locks = new FakeLocks() as unknown as LockManager;
  const steps: string[] = [];
  const tab = (name: string) =>
    exclusive(
      "room",
      async () => {
        steps.push(`${name} begins`);
        await settle();
        steps.push(`${name} ends`);
        return name;
      },
      locks,
    );
  assert.deepEqual(await Promise.all([tab("one"), tab("two")]), ["one", "two"]);
  assert.deepEqual(steps, ["one begins", "one ends", "two begins", "two ends"]);
});

test("a tab that fails lets the next one act", async () => {
  const locks = new FakeLocks() as unknown as LockManager;
  const failing = exclusive("room", () => Promise.reject(new Error("no")), locks);
  await assert.rejects(failing, /no/);
  assert.equal(await exclusive("room", () => Promise.resolve(1), locks), 1);
});

test("without locks it acts all the same, once", async () => {
  const refused = {
    request: () => Promise.reject(new DOMException("denied", "SecurityError")),
  } as unknown as LockManager;
  for (const locks of [undefined, refused]) {
    let acts = 0;
    assert.equal(await exclusive("room", () => Promise.resolve(++acts), locks), 1);
    assert.equal(acts, 1);
    await assert.rejects(
      exclusive("room", () => Promise.reject(new Error("no")), locks),
      /no/,
    );
  }
});
