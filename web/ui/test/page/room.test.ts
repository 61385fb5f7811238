import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { sha256 } from "@noble/hashes/sha2.js";
import { utf8 } from "../../src/check/bytes.ts";
import { toHex } from "../../src/check/hex.ts";
import { readRoom, textFor } from "../../src/page/room.ts";

/** As the server writes it, without members that pages do not need. */
const document = {
  size: 5,
  phase: "serving",
  paused: false,
  claims_frozen: false,
  full: false,
  message: null,
  opens: "2030-05-01T11:00:00.000Z",
  starts: "2030-05-01T12:00:00.000Z",
  closes: null,
  outflow: { per_minute: 60, max_active: 0 },
  window: null,
  windows: [
    {
      index: 3,
      from: "2030-05-01T11:03:00.000Z",
      to: "2030-05-01T11:04:00.000Z",
      arrivals: 7,
      frozen: true,
      drawn: true,
      first_position: 12,
    },
  ],
  lanes: { general: { drawn: 18, called: 2 } },
  poll: { after_ms: 2000, most_ms: 60_000, rest_ms: 120_000, jitter: 0.3, listen_ahead: 100 },
  now: "2030-05-01T12:00:00.500Z",
};

test("a state document, as seen from one of several lanes", () => {
  const window = { ...document.windows[0]!, lanes: { members: 4, general: 3, hall: 0 } };
  const lanes = {
    members: { weight: 3, drawn: 18, called: 2 },
    general: { weight: 6, drawn: 90, called: 8 },
    hall: { weight: 1, drawn: 5, called: 5 },
  };
  const several = { ...document, windows: [window], lanes };
  const members = readRoom(several, "members");
  assert.deepEqual([members.drawn, members.called, members.groups.get(3)], [18, 2, 4]);
  assert.deepEqual([members.share, members.shareNow], [3 / 10, 3 / 9]);
  const hall = readRoom(several, "hall");
  assert.deepEqual([hall.called, hall.groups.get(3), hall.share, hall.shareNow], [5, 0, 1 / 10, 1 / 10]);
  assert.equal(readRoom(several).drawn, 18); // without a place, the first lane
  assert.throws(() => readRoom(several, "vip"));
});

test("a state document", () => {
  assert.deepEqual(readRoom(document), {
    size: 5,
    phase: "serving",
    paused: false,
    claimsFrozen: false,
    full: false,
    open: false,
    message: undefined,
    revoked: 0,
    withdrawn: [],
    opens: Date.UTC(2030, 4, 1, 11),
    starts: Date.UTC(2030, 4, 1, 12),
    closes: Infinity,
    perMinute: 60,
    share: 1,
    shareNow: 1,
    free: Infinity,
    firstFree: 0,
    freed: Infinity,
    drawn: 18,
    called: 2,
    passed: 2,
    groups: new Map([[3, 7]]),
    after: 2000,
    most: 60_000,
    rest: 120_000,
    jitter: 0.3,
    listenAhead: 100,
    now: Date.UTC(2030, 4, 1, 12) + 500,
  });
});

test("a room whose site lets people in without waiting", () => {
  assert.deepEqual(
    [readRoom({ ...document, gate: "open" }).open, readRoom({ ...document, gate: "shut" }).open],
    [true, false],
  );
  assert.throws(() => readRoom({ ...document, gate: true }));
});

test("a room from which places were taken away", () => {
  const { revoked, withdrawn } = readRoom({ ...document, withdrawn: { count: 40, latest: ["6f9619ff", "cda3f665"] } });
  assert.deepEqual([revoked, withdrawn], [40, ["6f9619ff", "cda3f665"]]);
  assert.throws(() => readRoom({ ...document, withdrawn: { count: 1, latest: [7] } }));
});

test("a room that closes", () => {
  assert.equal(readRoom({ ...document, closes: "2030-05-01T13:00:00.000Z" }).closes, Date.UTC(2030, 4, 1, 13));
  assert.throws(() => readRoom({ ...document, closes: "soon" }));
});

test("a server of an older version does not say how rarely to ask", () => {
  const { rest_ms, ...poll } = document.poll;
  assert.equal(readRoom({ ...document, poll }).rest, 2.5 * rest_ms);
});

test("a room with a limit at its site", () => {
  const limited = {
    per_minute: 60,
    max_active: 5,
    free: 0,
    first_free: "2030-05-01T12:07:00.000Z",
    freed_per_minute: 0.25,
  };
  const { free, firstFree, freed } = readRoom({ ...document, outflow: limited });
  assert.deepEqual([free, firstFree, freed], [0, Date.UTC(2030, 4, 1, 12, 7), 0.25]);
  assert.throws(() => readRoom({ ...document, outflow: { ...limited, first_free: "soon" } }));
  assert.throws(() => readRoom({ ...document, outflow: { per_minute: 60, max_active: 5, free: "2" } }));
});

test("other documents are refused", () => {
  for (const broken of [
    null,
    [],
    "state",
    {},
    { ...document, size: "5" },
    { ...document, size: -1 },
    { ...document, size: NaN },
    { ...document, phase: 1 },
    { ...document, paused: 0 },
    { ...document, claims_frozen: undefined },
    { ...document, opens: "soon" },
    { ...document, windows: {} },
    { ...document, windows: [3] },
    { ...document, lanes: {} },
    { ...document, poll: null },
    { ...document, message: "Soon" },
    { ...document, message: { default: "en", texts: { en: 1 } } },
  ]) {
    assert.throws(() => readRoom(broken), /^Error: state/, JSON.stringify(broken));
  }
});

interface Vectors {
  messages: { canonical: string; sha256: string; readers: { wanted: string[]; lang: string }[] }[];
}

const vectors = JSON.parse(readFileSync("../../room/testdata/messages.json", "utf8")) as Vectors;

test("messages have the hashes that the server gives them, and readers the same texts", () => {
  assert.ok(vectors.messages.length >= 3);
  for (const { canonical, sha256: hash, readers } of vectors.messages) {
    const message = JSON.parse(canonical) as { texts: Record<string, string>; until?: string };
    assert.equal(toHex(sha256(utf8(JSON.stringify(message)))), hash, canonical);
    const room = readRoom({ ...document, message });
    for (const { wanted, lang } of readers) {
      assert.deepEqual(textFor(room.message, wanted, 0), { lang, words: message.texts[lang] }, wanted.join());
    }
  }
});

test("a message vanishes by itself", () => {
  const until = Date.UTC(2030, 4, 1, 12, 10);
  const { message } = readRoom({
    ...document,
    message: { default: "en", texts: { en: "Soon" }, until: new Date(until).toISOString() },
  });
  assert.deepEqual([textFor(message, ["en"], until - 1)?.words, textFor(message, ["en"], until)], ["Soon", undefined]);
  const stays = readRoom({ ...document, message: { default: "en", texts: { en: "Soon" } } }).message;
  assert.equal(textFor(stays, ["en"], until * 2)?.words, "Soon");
  assert.equal(textFor(undefined, ["en"], 0), undefined);
});
