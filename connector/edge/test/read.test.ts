// Responses that are too large, or not text.
import assert from "node:assert/strict";
import test from "node:test";
import { read } from "../src/read.ts";

test("responses are read up to a limit", async () => {
  assert.equal(await read(new Response("\ufeff\u00e9x"), 6), "\ufeff\u00e9x");
  assert.equal(await read(new Response(null), 0), "");
  assert.equal(await read(new Response("a".repeat(100_000)), 100_000), "a".repeat(100_000));
  await assert.rejects(read(new Response("\u00e9x"), 2), /more than 2 bytes/);
  await assert.rejects(read(new Response(Uint8Array.of(97, 0xc3)), 10), TypeError);
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1000;
      controller.enqueue(new Uint8Array(1000));
    },
  });
  await assert.rejects(read(new Response(endless), 5000), /more than 5000 bytes/);
  assert.ok(sent <= 10_000, `${sent} bytes were read`);
});
