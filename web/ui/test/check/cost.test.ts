import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

import { gather } from "../../src/check/evidence.ts";
import { checkPlace } from "../../src/check/place.ts";
import { Operator, opens, Room, visitorAt } from "../support/room.ts";

// What a check costs a phone: bytes and time.

test("the library is smaller than 30 kB, compressed", async (t) => {
  const { outputFiles } = await build({
    entryPoints: ["src/check/index.ts"],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    write: false,
  });
  const size = gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  assert.ok(size < 30_000, `${size} bytes`);
  t.diagnostic(`${size} bytes of ${outputFiles[0]!.contents.length}`);
});

test("a place among 100,000 is checked in less than 1.5 s", async (t) => {
  const operator = new Operator("queue.example.com/r/large", "large");
  const room = new Room(operator);
  room.join(opens, 100_000);
  room.draw(opens + 60_000);
  room.assign();
  const log = room.log();
  const files = log.publish(operator);
  const visitor = visitorAt(operator, log, 54_321);
  const from = performance.now();
  const evidence = await gather(files, visitor);
  const gathered = performance.now();
  const lines = checkPlace(visitor, evidence);
  const checked = performance.now();
  assert.deepEqual(
    lines.map(({ status }) => status),
    ["green", "green", "amber", "green"],
  );
  assert.ok(checked - from < 1500, `${checked - from} ms`);
  const bytes = files.asked.reduce((sum, path) => sum + files.map.get(path)!.length, 0);
  t.diagnostic(`gather ${Math.round(gathered - from)} ms, check ${Math.round(checked - gathered)} ms`);
  t.diagnostic(`${files.asked.length} files, ${bytes} bytes uncompressed`);
});
