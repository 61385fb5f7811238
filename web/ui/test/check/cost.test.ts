import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

import { verifyRound } from "../../src/check/beacon.ts";
import { gather } from "../../src/check/evidence.ts";
import { checkPlace } from "../../src/check/place.ts";
import { Chain, Witness } from "../support/beacon.ts";
import { Operator, opens, Room, visitorAt } from "../support/room.ts";

// The cost of a check on a phone: bytes and time.

/** CPU time of this process in milliseconds, which does not depend on other programs. */
function spent(): number {
  return process.cpuUsage().user / 1000;
}

test("the library is smaller than 50 kB, compressed", async (t) => {
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
  assert.ok(size < 50_000, `${size} bytes`);
  t.diagnostic(`${size} bytes of ${outputFiles[0]!.contents.length}`);
});

test("a place among 100,000 is checked in less than 1.5 s", async (t) => {
  const operator = new Operator("queue.example.com/r/large", "large");
  const chain = new Chain("large", BigInt(opens / 1000) - 86_400n);
  const witnesses = ["a", "b", "c", "d", "e"].map((name) => new Witness(`${name}.example.org`));
  const room = new Room(operator, { witnesses: witnesses.map(({ vkey }) => vkey), quorum: 3 }, chain);
  room.join(opens, 100_000);
  room.freeze(opens + 60_000);
  room.reveal(opens + 60_000, witnesses);
  room.assign();
  const log = room.log();
  const files = log.publish(operator);
  const visitor = visitorAt(operator, log, 54_321);
  const from = spent();
  const evidence = await gather(files, visitor);
  const gathered = spent();
  const lines = checkPlace(visitor, evidence);
  const checked = spent();
  assert.deepEqual(
    lines.map(({ status }) => status),
    ["green", "green", "amber", "green"],
  );
  assert.ok(checked - from < 1500, `${checked - from} ms`);
  const bytes = files.asked.reduce((sum, path) => sum + files.map.get(path)!.length, 0);
  t.diagnostic(`gather ${Math.round(gathered - from)} ms, check ${Math.round(checked - gathered)} ms`);
  t.diagnostic(`${files.asked.length} files, ${bytes} bytes uncompressed`);
});

test("a round of a beacon is checked in less than a second", (t) => {
  const chain = new Chain("cost", 0n);
  const signature = chain.sign(7n);
  const from = spent();
  assert.equal(verifyRound(chain.beacon, 7n, signature), true);
  const took = spent() - from;
  assert.ok(took < 1000, `${took} ms`);
  t.diagnostic(`${Math.round(took)} ms`);
});
