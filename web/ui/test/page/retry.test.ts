import assert from "node:assert/strict";
import { test } from "node:test";

import { Refusal } from "../../src/page/http.ts";
import { retry } from "../../src/page/retry.ts";
import { FakeTimers } from "./timers.ts";

const refusal = (status: number, after?: string): Refusal =>
  new Refusal(new Response(null, { status, headers: after === undefined ? {} : { "Retry-After": after } }));

/**
 * Calls a function that fails with each of these errors before it succeeds; returns the times of the calls, and the
 * reported trouble.
 */
async function trying(failures: Error[]) {
  const timers = new FakeTimers();
  timers.chance = 0;
  const tried: number[] = [];
  const heard: unknown[] = [];
  const act = async () => {
    tried.push(timers.now());
    const failure = failures[tried.length - 1];
    if (failure) throw failure;
    return "done";
  };
  const result = retry(act, (failure) => heard.push(failure), timers);
  result.catch(() => {});
  await timers.pass(600_000);
  return { tried, heard, result };
}

test("network errors are retried", async () => {
  const lost = new TypeError("fetch failed");
  const { tried, heard, result } = await trying([lost, lost, lost]);
  assert.equal(await result, "done");
  assert.deepEqual(tried, [0, 1000, 3000, 7000]);
  assert.deepEqual(heard, [lost, lost, lost]);
});

test("the server says how long it is busy", async () => {
  const { tried, result } = await trying([refusal(503, "20"), refusal(503), refusal(409, "5"), refusal(429)]);
  assert.equal(await result, "done");
  assert.deepEqual(tried, [0, 20_000, 22_000, 27_000, 35_000]);
});

test("a permanent refusal ends the retries", async () => {
  for (const status of [400, 403, 404, 409, 410]) {
    const { tried, heard, result } = await trying([refusal(status)]);
    await assert.rejects(result, (failure) => failure instanceof Refusal && failure.status === status);
    assert.deepEqual(tried, [0]);
    assert.deepEqual(heard, []);
  }
});
