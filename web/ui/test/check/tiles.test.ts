import assert from "node:assert/strict";
import { test } from "node:test";

import { equal, utf8 } from "../../src/check/bytes.ts";
import { FormatError } from "../../src/check/errors.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { consistencyRanges, inclusionRanges, rootOf, runRanges } from "../../src/check/merkle.ts";
import { LogReader } from "../../src/check/reader.ts";
import { hashesAt, parseTilePath, splitBundle, tileOf, tilePath } from "../../src/check/tiles.ts";
import { mangled } from "../support/random.ts";
import { bundle, Files, Log, Operator } from "../support/room.ts";
import { audit } from "../support/vectors.ts";

test("paths of the vectors", () => {
  for (const { level, index, width, path } of audit.tile_paths) {
    const tile = { level, index: BigInt(index), width };
    assert.equal(tilePath(tile), path);
    assert.deepEqual(parseTilePath(path), tile);
  }
  for (const path of audit.refused.tile_paths) assert.throws(() => parseTilePath(path), FormatError, path);
  assert.ok(audit.tile_paths.length * audit.refused.tile_paths.length > 0);
});

test("parsed paths are written the same way", () => {
  for (const { path } of audit.tile_paths) {
    for (const other of mangled(utf8(path))) {
      const changed = Buffer.from(other).toString("latin1");
      try {
        assert.equal(tilePath(parseTilePath(changed)), changed);
      } catch (failure) {
        assert.ok(failure instanceof FormatError, changed);
      }
    }
  }
});

/** All tiles and bundles of a log: entries first, then level by level. */
function tilesOf(size: number): string[] {
  const paths: string[] = [];
  for (let level = -1; hashesAt(level, BigInt(size)) > 0n; level++) {
    for (let n = 0n, tile = tileOf(level, n, BigInt(size)); tile; tile = tileOf(level, ++n, BigInt(size))) {
      paths.push(tilePath(tile));
    }
  }
  return paths;
}

test("tiles of the vectors", () => {
  for (const { old, size, paths } of audit.tiles) {
    const kept = new Set(tilesOf(old));
    assert.deepEqual(
      tilesOf(size).filter((path) => !kept.has(path)),
      paths,
      `${old} to ${size}`,
    );
  }
  assert.ok(audit.tiles.length > 0);
});

test("bundles of the vectors", () => {
  for (const { entries, bundle: encoded } of audit.bundles) {
    assert.deepEqual(splitBundle(fromHex(encoded), entries.length).map(toHex), entries);
    assert.equal(toHex(bundle(entries.map((e) => fromHex(e)))), encoded);
  }
  for (const { width, bundle: encoded } of audit.refused.bundles) {
    assert.throws(() => splitBundle(fromHex(encoded), width), FormatError, encoded);
  }
  assert.ok(audit.bundles.length * audit.refused.bundles.length > 0);
});

const operator = new Operator(audit.origin, "tiles");
const log = new Log(Array.from({ length: 66_000 }, (_, i) => utf8(`entry ${i}`)));
const published = new Map<number, Files>();

function publishedAt(size: number): Files {
  const files = published.get(size) ?? new Log(log.entries.slice(0, size)).publish(operator);
  published.set(size, files);
  return new Files(files.map);
}

test("proofs from tiles are those of the definition", async () => {
  const known = new Map<string, Uint8Array>();
  const root = (a: bigint, b: bigint): Uint8Array => {
    const hash = known.get(`${a} ${b}`) ?? rootOf(log.leaves.slice(Number(a), Number(b)));
    known.set(`${a} ${b}`, hash);
    return hash;
  };
  for (const size of [1, 2, 255, 256, 257, 300, 511, 513, 1000, 65_535, 65_536, 65_537, 65_800]) {
    const files = publishedAt(size);
    const n = BigInt(size);
    const near = [0, 1, 2, 255, 256, 257, size >> 1, size - 2, size - 1].filter((i) => i >= 0 && i < size);
    for (const i of near.map(BigInt)) {
      const reader = new LogReader(files, n);
      assert.deepEqual(
        await reader.inclusion(i),
        inclusionRanges(i, n).map(([a, b]) => root(a, b)),
        `${i} of ${n}`,
      );
      assert.deepEqual(
        await reader.consistency(i),
        consistencyRanges(i, n).map(([a, b]) => root(a, b)),
      );
      assert.deepEqual(await reader.entry(i), log.entries[Number(i)]);
      // Now with the bundle cached.
      assert.deepEqual(
        await reader.inclusion(i),
        inclusionRanges(i, n).map(([a, b]) => root(a, b)),
      );
      const run = [i, i + 300n < n ? i + 300n : n] as const;
      assert.deepEqual(
        await reader.run(run),
        runRanges(run, n).map(([a, b]) => root(a, b)),
      );
    }
  }
});

test("a reader asks once for a file, and only for files of its size", async () => {
  const files = publishedAt(65_800);
  const reader = new LogReader(files, 65_800n);
  await Promise.all([reader.entry(70n), reader.inclusion(70n), reader.consistency(65_790n), reader.inclusion(65_799n)]);
  assert.equal(new Set(files.asked).size, files.asked.length);
  const known = new Set(tilesOf(65_800));
  assert.deepEqual(
    files.asked.filter((path) => !known.has(path)),
    [],
  );
});

test("a full tile stands in for a partial one that is gone", async () => {
  const want = publishedAt(300);
  const whole = new Files(new Map([...want.map, ...publishedAt(1000).map]));
  for (const gone of ["tile/0/001.p/44", "tile/entries/001.p/44"]) assert.ok(whole.map.delete(gone));
  const reader = new LogReader(whole, 300n);
  assert.deepEqual(await reader.inclusion(299n), await new LogReader(want, 300n).inclusion(299n));
  assert.deepEqual((await reader.bundle(1n)).length, 44);
  assert.ok(whole.asked.includes("tile/0/001.p/44") && whole.asked.includes("tile/0/001"));
});

test("malformed files are refused, missing ones reported", async () => {
  const files = publishedAt(300);
  const tile = files.map.get("tile/0/000")!;
  for (const bad of [tile.subarray(1), new Uint8Array(0), Uint8Array.from([...tile, 0])]) {
    await assert.rejects(new LogReader(files.with("tile/0/000", bad), 300n).inclusion(1n), FormatError);
  }
  const entries = files.map.get("tile/entries/001.p/44")!;
  for (const bad of [
    entries.subarray(1),
    entries.subarray(0, -1),
    new Uint8Array(0),
    Uint8Array.from([...entries, 0]),
  ]) {
    const reader = new LogReader(files.with("tile/entries/001.p/44", bad), 300n);
    await assert.rejects(reader.entry(299n), FormatError);
  }
  await assert.rejects(new LogReader(new Files(new Map()), 300n).entry(299n), /tile\/entries\/001.p\/44: not found/);
  await assert.rejects(new LogReader(files, 300n).entry(512n), RangeError);
});

test("leaf tiles and bundles agree", async () => {
  const files = publishedAt(300);
  const reader = new LogReader(files, 300n);
  await reader.bundle(0n);
  const fromBundle = await reader.inclusion(3n);
  const fromTile = await new LogReader(files, 300n).inclusion(3n);
  assert.ok(fromBundle.every((hash, i) => equal(hash, fromTile[i]!)));
});
