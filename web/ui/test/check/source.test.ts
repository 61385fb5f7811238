import assert from "node:assert/strict";
import { test } from "node:test";

import { httpSource } from "../../src/check/source.ts";

test("files are fetched below the prefix, without cookies", async () => {
  const asked: unknown[] = [];
  const source = httpSource("https://queue.example.com/r/show/", async (url, options) => {
    asked.push([url, options]);
    return new Response(Uint8Array.of(1, 2), { status: 200 });
  });
  assert.deepEqual(await source.checkpoint(), Uint8Array.of(1, 2));
  assert.deepEqual(await source.tile("tile/0/000"), Uint8Array.of(1, 2));
  const options = { credentials: "omit" };
  assert.deepEqual(asked, [
    ["https://queue.example.com/r/show/checkpoint", options],
    ["https://queue.example.com/r/show/tile/0/000", options],
  ]);
});

test("an error response is a failure", async () => {
  const source = httpSource("/r/show/", async () => new Response("not found", { status: 404 }));
  await assert.rejects(source.tile("tile/0/000"), /tile\/0\/000: status 404/);
});
