import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";

import { getPublic, post, Refusal } from "../../src/page/http.ts";
import { settle } from "./timers.ts";

afterEach(() => {
  mock.restoreAll();
  mock.timers.reset();
});

/** Gives every request this response, and returns the requests. */
function answering(answer: (init: RequestInit) => Response | Promise<Response>): [string, RequestInit][] {
  const asked: [string, RequestInit][] = [];
  mock.method(globalThis, "fetch", async (url: string, init: RequestInit) => {
    asked.push([url, init]);
    return answer(init);
  });
  return asked;
}

test("public documents are requested without cookies, and revalidated", async () => {
  const asked = answering(() => new Response("{}"));
  assert.equal(await getPublic("/r/concert/state"), "{}");
  assert.equal(asked[0]![1].credentials, "omit");
  assert.equal(asked[0]![1].cache, "no-cache");
});

test("secrets are in bodies, never in addresses", async () => {
  const asked = answering(() => Response.json({ ticket: "id" }, { status: 201 }));
  assert.deepEqual(await post("/r/concert/line", { secret: "s" }), { ticket: "id" });
  const [url, init] = asked[0]!;
  assert.equal(url, "/r/concert/line");
  assert.deepEqual([init.method, init.credentials, init.body], ["POST", "same-origin", '{"secret":"s"}']);
  assert.equal((init.headers as Record<string, string>)["Content-Type"], "application/json");
});

test("a refusal says whether to try again, and when", async () => {
  for (const [status, after, isTemporary, retryAfter] of [
    [503, "2", true, 2000],
    [500, undefined, true, 0],
    [429, "1", true, 1000],
    [409, "1", true, 1000],
    [409, undefined, false, 0],
    [404, undefined, false, 0],
    [410, "nonsense", false, 0],
    [403, "-1", false, 0],
  ] as const) {
    answering(() => new Response(null, { status, headers: after === undefined ? {} : { "Retry-After": after } }));
    await assert.rejects(getPublic("/"), (failure) => {
      assert.ok(failure instanceof Refusal);
      assert.deepEqual([failure.status, failure.isTemporary, failure.retryAfter], [status, isTemporary, retryAfter]);
      return true;
    });
    mock.restoreAll();
  }
});

test("a request without a response, or with an endless one, times out", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const endless = (signal: AbortSignal) =>
    new ReadableStream({ start: (to) => signal.addEventListener("abort", () => to.error(signal.reason)) });
  for (const answer of [
    (init: RequestInit) =>
      new Promise<Response>((_, reject) => init.signal!.addEventListener("abort", () => reject(init.signal!.reason))),
    (init: RequestInit) => new Response(endless(init.signal!)),
  ]) {
    answering(answer);
    let failure: unknown;
    getPublic("/").catch((reason) => (failure = reason));
    await settle();
    mock.timers.tick(14_999);
    await settle();
    assert.equal(failure, undefined);
    mock.timers.tick(1);
    await settle();
    assert.equal((failure as DOMException | undefined)?.name, "AbortError");
    mock.restoreAll();
  }
});
