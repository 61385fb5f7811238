import type { Place } from "../../src/page/place.ts";
import type { Room } from "../../src/page/room.ts";

export const minute = 60_000;
/** The current time in all these tests: a whole minute. */
export const noon = Date.parse("2030-05-01T12:00:00Z");

export function roomOf(change: Partial<Room> = {}): Room {
  return {
    size: 5000,
    phase: "serving",
    paused: false,
    claimsFrozen: false,
    full: false,
    open: false,
    message: undefined,
    revoked: 0,
    withdrawn: [],
    opens: noon - 60 * minute,
    starts: noon - 30 * minute,
    closes: Infinity,
    perMinute: 100,
    share: 1,
    shareNow: 1,
    free: Infinity,
    firstFree: 0,
    freed: Infinity,
    drawn: 3000,
    called: 1000,
    passed: change.called ?? 1000,
    groups: new Map([[63, 412]]),
    after: 2000,
    most: 60_000,
    rest: 120_000,
    jitter: 0.3,
    listenAhead: 100,
    now: noon,
    ...change,
  };
}

export function placeOf(change: Partial<Place> = {}): Place {
  return {
    state: "waiting",
    room: "/r/concert",
    now: noon,
    poll: 2000,
    opens: noon - 60 * minute,
    starts: noon - 30 * minute,
    paused: false,
    claimsFrozen: false,
    gate: false,
    without: "",
    cookie: true,
    ticket: "6f9619ff-8b86-8011-b42d-00cf4fc964ff",
    joined: noon - 20_000,
    window: 63,
    lane: "general",
    closes: noon + minute,
    draws: noon + minute,
    base: 3000,
    drawn: change.base ?? 3000,
    position: undefined,
    rank: change.position,
    called: 1000,
    passed: change.called ?? 1000,
    slotEnds: Infinity,
    left: 0,
    ...change,
  };
}

/** The place after its draw. */
export function drawnOf(position: number, change: Partial<Place> = {}): Place {
  return placeOf({ state: "drawn", position, ...change });
}
