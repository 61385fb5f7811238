import assert from "node:assert/strict";
import { test } from "node:test";

import { type Basis, Expectation, expect, grows, isOverdue, type Range, round } from "../../src/page/expected.ts";
import { drawnOf, minute, noon, placeOf, roomOf } from "./rooms.ts";

const at = (minutes: number): number => noon + minutes * minute;
const range = (from: number, to: number): Range => ({ earliest: at(from), latest: at(to) });
const basis = (change: Partial<Basis> = {}): Basis => ({ state: "drawn", paused: false, perMinute: 100, ...change });

test("the expectation of the server", () => {
  // 1,999 visitors ahead at 100 a minute; the latest time has a quarter more, for 2,000.
  assert.deepEqual(expect(drawnOf(3000), roomOf(), noon), { earliest: at(19.99), latest: at(25) });
  // Before the draw: the call is after the draw, and at the latest that of the group's last place.
  assert.deepEqual(expect(placeOf(), roomOf(), noon), { earliest: at(1 + 20), latest: at(1 + 24.12 * 1.25) });
  // No visitor is called before the start.
  assert.equal(expect(drawnOf(1001), roomOf({ starts: at(40) }), noon)?.earliest, at(40));
});

test("a full site slows the line down", () => {
  // The server's test has the same cases.
  for (const [ahead, free, firstFree, freed, minutes] of [
    [999, Infinity, 0, Infinity, 12.5],
    [999, 1000, 20, 1, 12.5],
    [999, 100, 0, 10, 1 + 89.9 * 1.25],
    [999, 100, 7, 10, 7 + 89.9 * 1.25],
    [999, 0, 3, 10, 3 + 99.9 * 1.25],
    [999, 0, 0, 1000, 12.5],
    [0, 0, 20, 2.5, 20],
  ] as const) {
    const got = expect(drawnOf(1001 + ahead), roomOf({ free, firstFree: at(firstFree), freed }), noon);
    assert.equal(got?.earliest, at(ahead / 100));
    assert.ok(
      Math.abs((got?.latest ?? 0) - at(minutes)) < 1,
      `${ahead} ahead, ${free} free, ${freed} a minute: ${got?.latest}`,
    );
  }
});

test("there is no expectation in a pause and after the call", () => {
  assert.equal(expect(drawnOf(3000), roomOf({ paused: true }), noon), undefined);
  assert.equal(expect(drawnOf(3000, { state: "called" }), roomOf(), noon), undefined);
});

test("ranges are widened to steps that grow with the distance", () => {
  // The server's test has the same cases.
  const clock = (time: string): number => Date.parse(`2030-05-01T${time}Z`);
  const now = clock("12:03:20");
  for (const [earliest, latest, from, to] of [
    ["12:04:59", "12:05:01", "12:04:00", "12:06:00"],
    ["12:04:00", "12:05:00", "12:04:00", "12:05:00"],
    ["12:44:10", "13:33:10", "12:40:00", "13:35:00"],
    ["16:44:10", "18:33:10", "16:30:00", "18:45:00"],
  ] as const) {
    assert.deepEqual(round({ earliest: clock(earliest), latest: clock(latest) }, now), {
      earliest: clock(from),
      latest: clock(to),
    });
  }
});

/** Feeds an expectation and returns what it says, in minutes after noon. */
function say(steps: [number, Range | undefined, Basis][]) {
  const expectation = new Expectation();
  return steps.map(([now, next, on]) => {
    expectation.update(next, on, at(now));
    const { range } = expectation.shown!;
    return [(range.earliest - noon) / minute, (range.latest - noon) / minute, expectation.cause(at(now))];
  });
}

test("the range moves nearer at any time, and moves back only with a cause", () => {
  assert.deepEqual(
    say([
      [0, range(20, 30), basis()],
      [1, range(20.5, 29.2), basis()], // the earliest time does not change
      [2, range(18, 27), basis()],
      [3, range(18, 27.5), basis()], // later, because visitors go in more slowly than planned
      [4, range(18, 27), basis()],
    ]),
    [
      [20, 30, undefined],
      [20, 30, undefined],
      [18, 27, undefined],
      [18, 28, "behind"],
      [18, 27, "behind"],
    ],
  );
});

test("causes are named", () => {
  const later: [number, Range | undefined][] = [[2, range(25, 40)]];
  const first: [number, Range, Basis] = [0, range(20, 30), basis()];
  const [now, next] = later[0]!;
  assert.equal(say([first, [now, next, basis({ perMinute: 50 })]])[1]![2], "slower");
  assert.equal(say([first, [1, undefined, basis({ paused: true })], [now, next, basis()]])[2]![2], "paused");
  assert.equal(say([first, [now, next, basis()]])[1]![2], "behind");
});

test("a pause is a cause once", () => {
  const said = say([
    [0, range(20, 30), basis()],
    [1, undefined, basis({ paused: true })],
    [2, range(20, 29), basis()], // shorter than expected
    [3, range(20, 35), basis()],
  ]);
  assert.deepEqual(said[2], [20, 29, undefined]);
  assert.equal(said[3]![2], "behind");
});

test("a cause is stated for five minutes", () => {
  const expectation = new Expectation();
  expectation.update(range(20, 30), basis(), at(0));
  expectation.update(range(20, 40), basis(), at(1));
  assert.equal(expectation.cause(at(5.9)), "behind");
  assert.equal(expectation.cause(at(6.1)), undefined);
});

test("the range never lies in the past", () => {
  assert.deepEqual(
    say([
      [0, range(1, 10), basis()],
      [5.5, range(5.6, 8), basis()],
    ])[1],
    [5, 8, undefined],
  );
});

test("nothing is expected while a draw is late", () => {
  const place = placeOf({ draws: at(1) });
  assert.equal(isOverdue(place, at(1.49)), false);
  assert.notEqual(expect(place, roomOf(), at(1.49)), undefined);
  assert.equal(isOverdue(place, at(1.5)), true);
  assert.equal(expect(place, roomOf(), at(1.5)), undefined);
  assert.equal(isOverdue(drawnOf(7, { draws: at(1) }), at(9)), false);
});

test("a group grows until it closes, and no longer", () => {
  const place = placeOf({ closes: at(1) });
  assert.equal(grows(place, at(0.99)), true);
  assert.equal(grows(place, at(1)), false);
  assert.equal(grows(drawnOf(7, { closes: at(1) }), at(0)), false);
});

test("a cause that was stated before the draw ends with it", () => {
  const waiting = basis({ state: "waiting" });
  const said = say([
    [0, range(20, 30), waiting],
    [1, range(20, 40), { ...waiting, perMinute: 50 }],
    [2, range(33, 39), basis({ perMinute: 50 })],
  ]);
  assert.deepEqual(
    said.map(([, , cause]) => cause),
    [undefined, "slower", undefined],
  );
});

test("a draw settles open positions", () => {
  const said = say([
    [0, range(20, 40), basis({ state: "waiting" })],
    [1, range(33, 39), basis()],
  ]);
  assert.deepEqual(said[1], [33, 39, undefined]);
});

test("the expectation survives a reload", () => {
  const before = new Expectation();
  before.update(range(20, 30), basis(), at(0));
  const after = new Expectation(JSON.parse(JSON.stringify(before.shown)));
  after.update(range(20, 33), basis({ perMinute: 80 }), at(1));
  assert.equal(after.cause(at(1)), "slower");
});

test("in random sequences each end moves back only with a cause", () => {
  let seed = 7;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let run = 0; run < 200; run++) {
    const expectation = new Expectation();
    let was: Range | undefined;
    for (let now = 0; now < 60; now += random()) {
      const paused = random() < 0.1;
      const from = now + random() * 50;
      expectation.update(
        paused ? undefined : range(from, from + random() * 30),
        basis({ paused, perMinute: Math.ceil(random() * 3) }),
        at(now),
      );
      const is = expectation.shown?.range;
      if (was && is && is.latest > was.latest) assert.ok(expectation.cause(at(now)), `later at ${now} without a cause`);
      if (was && is && is.earliest > was.earliest && is.earliest > Math.floor(at(now) / minute) * minute) {
        assert.ok(expectation.cause(at(now)), `earliest later at ${now} without a cause`);
      }
      was = is;
    }
  }
});
