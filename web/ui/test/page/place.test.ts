import assert from "node:assert/strict";
import { test } from "node:test";

import { ahead, hasMoved, isFinal, isLater, isNear, isStanding, nextPoll, readPlace } from "../../src/page/place.ts";
import { newer, type Room } from "../../src/page/room.ts";
import { drawnOf, minute, noon, placeOf, roomOf } from "./rooms.ts";

test("the server is asked when, and only when, a place has moved", () => {
  for (const [name, place, room, now, moved] of [
    ["waiting", placeOf(), roomOf(), noon, false],
    ["all groups before are drawn", placeOf(), roomOf({ drawn: 3000 }), noon, false],
    ["my group is drawn", placeOf(), roomOf({ drawn: 3001 }), noon, true],
    ["waiting, ended", placeOf(), roomOf({ phase: "ended" }), noon, true],
    ["waiting, paused", placeOf(), roomOf({ paused: true }), noon, false],
    ["drawn", drawnOf(3000), roomOf({ called: 2999 }), noon, false],
    ["reached", drawnOf(3000), roomOf({ called: 3000 }), noon, true],
    ["passed", drawnOf(3000), roomOf({ called: 4000 }), noon, true],
    ["called", drawnOf(3000, { state: "called", left: minute }), roomOf(), noon + minute - 1, false],
    ["called, too late", drawnOf(3000, { state: "called", left: minute }), roomOf(), noon + minute, true],
    ["called, a pause begins", drawnOf(3000, { state: "called", left: minute }), roomOf({ paused: true }), noon, true],
    [
      "called, during a pause",
      drawnOf(3000, { state: "called", left: minute, paused: true }),
      roomOf({ paused: true }),
      noon + 9 * minute,
      false,
    ],
    ["called, a pause ends", drawnOf(3000, { state: "called", left: minute, paused: true }), roomOf(), noon, true],
    [
      "called, claims frozen",
      drawnOf(3000, { state: "called", left: minute, paused: true }),
      roomOf({ paused: true, claimsFrozen: true }),
      noon,
      true,
    ],
    [
      "called, claims still frozen",
      drawnOf(3000, { state: "called", left: minute, paused: true, claimsFrozen: true }),
      roomOf({ paused: true, claimsFrozen: true }),
      noon,
      false,
    ],
    ["upcoming", placeOf({ state: "upcoming" }), roomOf({ phase: "upcoming" }), noon, false],
    ["opens at another time", placeOf({ state: "upcoming" }), roomOf({ opens: noon }), noon, true],
    ["joinable", placeOf({ state: "joinable" }), roomOf(), noon, false],
    ["joinable, by an old document", placeOf({ state: "joinable" }), roomOf({ phase: "upcoming" }), noon, false],
    ["joinable, closed", placeOf({ state: "joinable" }), roomOf({ phase: "closed", closes: noon }), noon, true],
    [
      "joinable, closed in a pause",
      placeOf({ state: "joinable" }),
      roomOf({ phase: "paused", closes: noon }),
      noon,
      true,
    ],
    ["joinable, closes later", placeOf({ state: "joinable" }), roomOf({ closes: noon + 1 }), noon, false],
    ["closed", placeOf({ state: "closed" }), roomOf({ phase: "closed", closes: noon }), noon, false],
    ["closed, in a pause", placeOf({ state: "closed" }), roomOf({ phase: "paused", closes: noon }), noon, false],
    ["closed, and opened again", placeOf({ state: "closed" }), roomOf({ closes: noon + minute }), noon, true],
    ["closed, ended", placeOf({ state: "closed" }), roomOf({ phase: "ended" }), noon, true],
    ["missed", placeOf({ state: "missed", without: "joinable" }), roomOf(), noon, false],
    ["missed, ended", placeOf({ state: "missed", without: "joinable" }), roomOf({ phase: "ended" }), noon, true],
    ["missed, closed", placeOf({ state: "missed", without: "joinable" }), roomOf({ closes: noon }), noon, true],
    ["missed, closed before", placeOf({ state: "missed", without: "closed" }), roomOf({ closes: noon }), noon, false],
    ["missed, and full", placeOf({ state: "missed", without: "joinable" }), roomOf({ full: true }), noon, true],
    ["over, closed", placeOf({ state: "over", without: "joinable" }), roomOf({ closes: noon }), noon, true],
    ["left, no longer full", placeOf({ state: "left", without: "full" }), roomOf(), noon, true],
    ["left, ended", placeOf({ state: "left", without: "closed" }), roomOf({ phase: "ended" }), noon, true],
    ["revoked", placeOf({ state: "revoked", without: "joinable" }), roomOf({ closes: noon }), noon, false],
    ["revoked, ended", placeOf({ state: "revoked", without: "joinable" }), roomOf({ phase: "ended" }), noon, true],
    ["admitted", placeOf({ state: "admitted" }), roomOf({ phase: "ended" }), noon, false],
  ] as const) {
    assert.equal(hasMoved(place, room, now), moved, name);
  }
});

test("a revoked place that was given back stands again", () => {
  assert.deepEqual(
    ["waiting", "drawn", "called", "skipped"].map((status) => isStanding(JSON.stringify({ status }))),
    [true, true, true, false],
  );
});

test("people ahead", () => {
  assert.deepEqual(ahead(placeOf(), roomOf()), { min: 2000, max: 2411 });
  assert.deepEqual(ahead(placeOf({ base: 0, called: 0 }), roomOf({ called: 0 })), { min: 0, max: 411 });
  assert.deepEqual(ahead(placeOf({ window: 64 }), roomOf()), { min: 2000, max: 2000 });
  assert.deepEqual(ahead(drawnOf(3000), roomOf()), { min: 1999, max: 1999 });
  assert.deepEqual(ahead(drawnOf(1001), roomOf()), { min: 0, max: 0 });
  assert.deepEqual(ahead(drawnOf(900), roomOf()), { min: 0, max: 0 });
  assert.deepEqual(ahead(drawnOf(3000, { called: 1100 }), roomOf()), { min: 1899, max: 1899 }); // the place is newer than the room
});

test("the interval grows with the distance, between the server's and a minute", () => {
  const after = (position: number, room = roomOf()) => nextPoll(drawnOf(position), room, noon).after;
  assert.equal(after(1001), 2000); // next
  assert.equal(after(1001 + 20), 3000); // 12 s away
  assert.equal(after(1001 + 100), 15_000); // a minute away
  assert.equal(after(1001 + 100_000), 60_000);
  assert.equal(after(1001 + 100_000, roomOf({ most: 15_000 })), 15_000); // the claim time is short
  assert.equal(after(1001 + 100, roomOf({ after: 20_000 })), 20_000);
  assert.equal(after(1001, roomOf({ after: 90_000 })), 90_000); // the server may ask for patience
  assert.equal(after(1001, roomOf({ starts: noon + minute })), 15_000);
  // Before the start, the server's interval applies from the start on, and a draw may be earlier.
  const before = roomOf({ phase: "open", starts: noon + 60 * minute, after: 60_000 });
  assert.equal(nextPoll(placeOf({ draws: noon + 4000 }), before, noon).after, 2000);
  assert.equal(after(1001, before), 60_000);
  assert.equal(nextPoll(placeOf(), roomOf(), noon).after, 15_000); // the draw is a minute away
  assert.equal(nextPoll(placeOf(), roomOf(), noon + minute).after, 2000);
});

test("a called place is polled until its claim time is over", () => {
  const called = drawnOf(1000, { state: "called", left: minute });
  assert.equal(nextPoll(called, roomOf(), noon).after, 2000);
  assert.equal(nextPoll(called, roomOf(), noon + 59_000).after, 1000);
  assert.equal(nextPoll(called, roomOf(), noon + minute).after, 500);
});

test("the page's data attributes", () => {
  const place = readPlace({
    state: "drawn",
    room: "/r/concert",
    ticket: "id",
    position: "4211",
    now: "5",
    base: "7",
    cookie: "",
    left: "9",
  });
  assert.equal(place.position, 4211);
  assert.equal(place.cookie, true);
  assert.equal(place.paused, false);
  assert.deepEqual([place.now, place.base, place.left], [5, 7, 9]);
  assert.equal(readPlace({ state: "waiting" }).position, undefined);
});

test("a later place than the one shown first is noticed", () => {
  assert.equal(isLater(drawnOf(4212), 4211), true);
  assert.equal(isLater(drawnOf(4211), 4211), false);
  assert.equal(isLater(drawnOf(4210), 4211), false); // also wrong, and reported by the check
  assert.equal(isLater(drawnOf(4211), undefined), false);
  assert.equal(isLater(placeOf(), 4211), false);
});

test("the number ahead never grows, even with stale caches", () => {
  const documents = [3, 1, 4, 1, 5, 9, 2, 6].map((n) => roomOf({ size: 5000 + n, called: 1000 + 10 * n }));
  for (const place of [placeOf(), drawnOf(3000)]) {
    let room: Room | undefined;
    let was = Infinity;
    for (const document of documents) {
      room = newer(room, document);
      assert.ok(ahead(place, room).min <= was);
      was = ahead(place, room).min;
    }
    assert.equal(room?.called, 1090);
  }
});

test("a page on which nothing more can happen is final", () => {
  assert.deepEqual(
    ["joinable", "closed", "waiting", "drawn", "called", "admitted", "missed", "left", "revoked", "ended"].map(
      (state) => isFinal(placeOf({ state })),
    ),
    [false, false, false, false, false, true, false, false, true, true],
  );
  for (const state of ["missed", "revoked"]) {
    const gone = ["joinable", "full", "closed", "ended"].map((without) => isFinal(placeOf({ state, without })));
    assert.deepEqual(gone, [false, false, false, true], state);
  }
});

test("a visitor that waits for nothing polls at the server's longest interval", () => {
  const after = (state: string, without = "") =>
    nextPoll(placeOf({ state, without }), roomOf({ rest: 900_000 }), noon).after;
  assert.deepEqual(
    ["joinable", "full", "closed"].map((state) => after(state)),
    [30_000, 30_000, 900_000],
  );
  assert.deepEqual(
    ["joinable", "full", "closed"].map((without) => after("missed", without)),
    [900_000, 30_000, 900_000],
  );
  assert.equal(after("left", "joinable"), 900_000);
  assert.equal(after("revoked", "joinable"), 900_000);
});

test("a place near the front that can still be called listens", () => {
  assert.equal(isNear(drawnOf(1100), roomOf()), true);
  assert.equal(isNear(drawnOf(1101), roomOf()), false);
  assert.equal(isNear(drawnOf(1100), roomOf({ paused: true })), true);
  assert.equal(isNear(drawnOf(1101), roomOf({ paused: true })), false);
  assert.equal(isNear(drawnOf(1001), roomOf({ listenAhead: 0 })), false);
  assert.equal(isNear(placeOf(), roomOf()), false);
});

test("the text for an open gate is fetched if the page lacks it", () => {
  const moves = (state: string, gate: boolean) => {
    const closes = state === "closed" ? noon : Infinity;
    return hasMoved(placeOf({ state, gate, left: minute, without: "joinable" }), roomOf({ open: true, closes }), noon);
  };
  assert.deepEqual(
    ["joinable", "waiting", "drawn", "closed", "missed", "left"].map((state) => moves(state, false)),
    Array(6).fill(true),
  );
  assert.deepEqual(
    ["joinable", "waiting", "drawn", "closed", "missed", "left"].map((state) => moves(state, true)),
    Array(6).fill(false),
  );
  assert.deepEqual(
    ["called", "admitted", "ended"].map((state) => moves(state, false)),
    [false, false, false],
  );
});

test("a full line is polled again", () => {
  assert.equal(hasMoved(placeOf({ state: "full" }), roomOf({ full: true }), noon), false);
  assert.equal(hasMoved(placeOf({ state: "full" }), roomOf(), noon), true);
  assert.equal(hasMoved(placeOf({ state: "joinable" }), roomOf({ full: true }), noon), true);
});

test("a place that the organizer took away is noticed in any room, paused or not", () => {
  const withdrawn = ["00000000", "6f9619ff"];
  for (const state of ["waiting", "drawn", "called"]) {
    const place = placeOf({ state, position: state === "waiting" ? undefined : 4000, left: 5 * minute, paused: true });
    assert.equal(hasMoved(place, roomOf({ paused: true, revoked: 2, withdrawn }), noon), true, state);
    assert.equal(hasMoved(place, roomOf({ paused: true, revoked: 1, withdrawn: ["00000000"] }), noon), false, state);
  }
  assert.equal(hasMoved(placeOf({ state: "revoked" }), roomOf({ revoked: 2, withdrawn }), noon), false);
});

test("places of nobody are not counted as people ahead", () => {
  const room = roomOf({ called: 1000, passed: 400 });
  assert.deepEqual(ahead(drawnOf(3000, { called: 1000, passed: 380, rank: 501 }), room), { min: 100, max: 100 });
  assert.deepEqual(ahead(placeOf({ base: 450, passed: 380 }), room), { min: 50, max: 461 });
});
