import assert from "node:assert/strict";
import { test } from "node:test";

import { fromBase64, fromBase64Url, toBase64, toBase64Url } from "../../src/check/base64.ts";
import { concat, equal, fromUtf8, uint64, utf8 } from "../../src/check/bytes.ts";
import { parseDecimal } from "../../src/check/decimal.ts";
import { FormatError } from "../../src/check/errors.ts";
import { fromHex, toHex } from "../../src/check/hex.ts";
import { makeUuid8, parseUuid8, uuidBytes } from "../../src/check/uuid.ts";
import { mangled, Random } from "../support/random.ts";

const random = new Random(1);

test("encodings are reversible", () => {
  for (let n = 0; n < 200; n++) {
    const bytes = random.bytes(n);
    assert.equal(toHex(bytes), Buffer.from(bytes).toString("hex"));
    assert.equal(toBase64(bytes), Buffer.from(bytes).toString("base64"));
    assert.equal(toBase64Url(bytes), Buffer.from(bytes).toString("base64url"));
    assert.deepEqual(fromHex(toHex(bytes)), bytes);
    assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
    assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
  }
});

test("a mangled encoding is refused or means other bytes", () => {
  for (const size of [1, 2, 3, 16, 32]) {
    const bytes = random.bytes(size);
    for (const [write, read] of [
      [toHex, fromHex],
      [toBase64, fromBase64],
      [toBase64Url, fromBase64Url],
    ] as const) {
      for (const other of mangled(utf8(write(bytes)))) {
        const text = Buffer.from(other).toString("latin1");
        if (text === write(bytes)) continue; // a digit doubled next to an equal one
        try {
          const got = read(text);
          assert.notDeepEqual(got, bytes, text);
          assert.equal(write(got), text);
        } catch (failure) {
          assert.ok(failure instanceof FormatError, text);
        }
      }
    }
  }
});

test("base64 is strict", () => {
  for (const bad of ["A", "AA", "AA=", "AB==", "AAB=", "AA==\n", " AA==", "A A==", "AA==AA==", "AA-_", "\u0100AA="]) {
    assert.throws(() => fromBase64(bad), FormatError, bad);
  }
  for (const bad of ["A", "AB", "AAB", "AA==", "AA+/", "AA\n"])
    assert.throws(() => fromBase64Url(bad), FormatError, bad);
});

test("hexadecimal is strict", () => {
  for (const bad of ["0", "0G", "AB", "0x00", " 00", "00\n"]) assert.throws(() => fromHex(bad), FormatError, bad);
  assert.throws(() => fromHex("00", 2), FormatError);
  assert.throws(() => fromHex("0000", 1), FormatError);
});

test("decimals have one spelling and a limit", () => {
  assert.equal(parseDecimal("0", 1n), 0n);
  assert.equal(parseDecimal("18446744073709551615", 1n << 64n), (1n << 64n) - 1n);
  const bad = [
    "",
    "00",
    "01",
    "+1",
    "-1",
    "-0",
    "1.0",
    "1e1",
    "0x1",
    " 1",
    "1 ",
    "1\n",
    "1_0",
    "\u0661",
    "18446744073709551616",
  ];
  for (const text of bad) assert.throws(() => parseDecimal(text, 1n << 64n), FormatError, text);
  assert.throws(() => parseDecimal("1", 1n), FormatError);
  assert.throws(() => parseDecimal("9".repeat(100_000), 1n << 64n), FormatError);
});

test("UTF-8 is strict and keeps a byte order mark", () => {
  assert.equal(fromUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)), "\ufeffa");
  for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x80]]) {
    assert.throws(() => fromUtf8(Uint8Array.from(bad)), FormatError);
  }
});

test("UUIDs have version 8, the RFC's variant and lower case", () => {
  for (let i = 0; i < 100; i++) {
    const bytes = random.bytes(32);
    const text = makeUuid8(bytes);
    assert.equal(parseUuid8(text), text);
    const back = uuidBytes(text);
    assert.equal(makeUuid8(back), text);
    assert.ok(back.every((byte, j) => byte === bytes[j] || j === 6 || j === 8));
  }
  const good = "0badcafe-0123-8123-8123-456789abcdef";
  assert.equal(parseUuid8(good), good);
  const bad = [
    good.toUpperCase(),
    good.replaceAll("-", ""),
    `${good}\n`,
    ` ${good}`,
    good.replace("-8123-8", "-4123-8"),
    good.replace("-8123-4", "-c123-4"),
    good.replace("-8123-4", "-0123-4"),
    "",
  ];
  for (const text of bad) assert.throws(() => parseUuid8(text), FormatError, text);
});

test("bytes", () => {
  assert.deepEqual(concat(Uint8Array.of(1), new Uint8Array(0), Uint8Array.of(2, 3)), Uint8Array.of(1, 2, 3));
  assert.deepEqual(uint64(0x0102030405060708n), Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  assert.ok(equal(Uint8Array.of(1, 2), Uint8Array.of(1, 2)));
  assert.ok(!equal(Uint8Array.of(1, 2), Uint8Array.of(1, 3)));
  assert.ok(!equal(Uint8Array.of(1, 2), Uint8Array.of(1)));
});
