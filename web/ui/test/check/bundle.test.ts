import assert from "node:assert/strict";
import { test } from "node:test";

import { formatBundle, maxBundleSize, parseBundle } from "../../src/check/bundle.ts";
import { utf8 } from "../../src/check/bytes.ts";
import { FormatError } from "../../src/check/errors.ts";
import { type Evidence, gather, type Visitor } from "../../src/check/evidence.ts";
import { checkPlace } from "../../src/check/place.ts";
import { type Facts, type Line, verdicts } from "../../src/check/verdicts.ts";
import { honest, reasons } from "../support/check.ts";
import { mangled } from "../support/random.ts";
import { Operator, Room, script, visitorAt } from "../support/room.ts";
import { ticketFiles } from "../support/vectors.ts";

const operator = new Operator("queue.example.com/r/bundle", "bundle");
const log = script(operator, [7, 12, 5]).log();
const files = log.publish(operator);
const mine = log.entries.findIndex((entry) => Buffer.from(entry).toString().includes(" 1 4 "));
const me = visitorAt(operator, log, mine);

/** The facts as the Go program names and writes them. */
function plain({ keyFrom, problem: _, ...facts }: Facts): Record<string, string> {
  const named = { key_from: keyFrom, ...facts };
  return Object.fromEntries(
    Object.entries(named)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  );
}

test("every reason has the colour that the Go program gives it", () => {
  assert.deepEqual(verdicts, ticketFiles.verdicts);
});

test("the files of the vectors give the same result as in Go", () => {
  for (const { name, file, lines } of ticketFiles.files) {
    const { visitor, evidence } = parseBundle(utf8(file));
    const said = checkPlace(visitor, evidence).map(({ facts, ...line }: Line) => ({ ...line, facts: plain(facts) }));
    assert.deepEqual(
      said,
      lines.map((line) => ({ facts: {}, ...line })),
      name,
    );
    assert.equal(formatBundle(visitor, evidence), file, name);
  }
  assert.ok(ticketFiles.files.length > 50);
});

test("files that are not saved proofs are refused", () => {
  const first = ticketFiles.files[0]!.file;
  for (const { name, find, put } of ticketFiles.refused) {
    assert.equal(first.split(find).length, 2, name);
    assert.throws(() => parseBundle(utf8(first.replace(find, () => put))), FormatError, name);
  }
  for (const text of ["", "null", "1", '"x"', "{}\n", "[".repeat(1 << 20), first + " ".repeat(maxBundleSize)]) {
    assert.throws(() => parseBundle(utf8(text)), FormatError, text.slice(0, 20));
  }
  assert.throws(() => parseBundle(Uint8Array.of(...utf8(first), 0xff)), FormatError);
});

test("gathered evidence is the same after it was saved", async () => {
  const all: Evidence[] = [
    await gather(files, me),
    await gather(files, me, { amends: [8n], earlier: [10n] }),
    await gather(files.with("checkpoint", Uint8Array.of(0xff, 0x22, 0)), me),
    {
      checkpoint: utf8("\ufeff\u2028\u{1f512}\x7f\b\f\0"),
      merits: [],
      amends: [],
      malformed: 'a "tile" \\ <&>',
      gaveUp: true,
    },
  ];
  for (const evidence of all) {
    for (const visitor of [
      me,
      { ...me, shown: 12n },
      { origin: me.origin, ticket: me.ticket, receipt: Uint8Array.of(0x80) },
    ]) {
      const read = parseBundle(utf8(formatBundle(visitor, evidence)));
      assert.deepEqual(read, { visitor, evidence });
      assert.deepEqual(checkPlace(read.visitor, read.evidence), checkPlace(visitor, evidence));
    }
  }
  assert.deepEqual(reasons(checkPlace(me, all[0]!)), honest);
});

test("a secret is never saved", async () => {
  const secret = Room.secret(11);
  const index = log.entries.findIndex((entry) => Buffer.from(entry).toString().includes(" 1 4 "));
  const visitor: Visitor = { ...visitorAt(operator, log, index), ticket: { secret } };
  const file = formatBundle(visitor, await gather(files, visitor));
  assert.equal(parseBundle(utf8(file)).visitor.ticket, me.ticket);
  for (const form of ["hex", "base64", "base64url"] as const)
    assert.ok(!file.includes(Buffer.from(secret).toString(form)));
});

test("content that a file cannot hold is an error", async () => {
  const evidence = await gather(files, me);
  const room = evidence.room!;
  const cases: [string, Visitor, Evidence][] = [
    ["a negative place", { ...me, shown: -1n }, evidence],
    ["a place too large", { ...me, shown: 1n << 63n }, evidence],
    ["no ticket", { ...me, ticket: "" }, evidence],
    ["lone surrogate", { ...me, origin: "\ud800" }, evidence],
    ["too long", me, { ...evidence, room: { ...room, entry: new Uint8Array(maxBundleSize) } }],
  ];
  for (const [name, visitor, one] of cases) assert.throws(() => formatBundle(visitor, one), FormatError, name);
});

test("a changed file is refused, or shows less", async () => {
  const file = utf8(formatBundle(me, await gather(files, me)));
  let read = 0;
  let n = 0;
  for (const changed of mangled(file)) {
    if (n++ % 97 !== 0) continue; // some of them, because each takes a whole check
    let bundle: ReturnType<typeof parseBundle>;
    try {
      bundle = parseBundle(changed);
    } catch (failure) {
      assert.ok(failure instanceof FormatError);
      continue;
    }
    read++;
    assert.notDeepEqual(reasons(checkPlace(bundle.visitor, bundle.evidence)), honest, `change ${n}`);
  }
  assert.ok(read > 50, `${read}`);
});
