// Measures how often pages poll the server, with the pages' own code and a
// simulated clock. Prints a JSON line for each length of the line.
import { hasMoved, nextPoll, type Place } from "../src/page/place.ts";
import type { Room } from "../src/page/room.ts";

const perMinute = 1000;
const minutes = 10;
const second = 1000;
const minute = 60 * second;
/** How long a cache in front answers in the server's place: max-age of the state. */
const maxAge = second;

/** Simulates a line of so many visitors with a place, none of them called yet. */
function measure(people: number) {
  const random = spread();
  const polls = Array.from({ length: people }, (_, i) => ({ at: random() * minute, place: placeOf(i + 1) }));
  const asks = new Calendar(polls);
  let waited = 0; // minutes of all people
  let state = 0; // requests
  let own = 0;
  let origin = 0; // requests for the state that a cache lets through
  let cachedUntil = -Infinity;
  for (let i = 1; i <= people; i++) waited += Math.min(minutes, i / perMinute);
  for (let next = asks.take(); next && next.at < minutes * minute; next = asks.take()) {
    const { at, place } = next;
    const room = roomAt(at);
    state++;
    if (at >= cachedUntil) {
      origin++;
      cachedUntil = at + maxAge;
    }
    if (hasMoved(place, room, at)) {
      own++; // the words for the call
      continue; // and no longer waiting
    }
    const { after, jitter } = nextPoll(place, room, at);
    asks.put({ at: at + after * (1 + jitter * (2 * random() - 1)), place });
  }
  return { people, asked: (state + own) / waited, origin: (origin + own) / waited };
}

function placeOf(position: number): Place {
  return {
    state: "drawn",
    room: "/r/bench",
    now: 0,
    poll: 2000,
    opens: 0,
    starts: 0,
    paused: false,
    claimsFrozen: false,
    gate: false,
    without: "",
    cookie: true,
    ticket: String(position),
    joined: 0,
    lane: undefined,
    window: 0,
    closes: 0,
    draws: 0,
    base: 0,
    drawn: 0,
    position,
    rank: position,
    called: 0,
    passed: 0,
    slotEnds: Infinity,
    left: 0,
  };
}

function roomAt(now: number): Room {
  return {
    size: 1,
    phase: "serving",
    paused: false,
    claimsFrozen: false,
    full: false,
    open: false,
    message: undefined,
    revoked: 0,
    withdrawn: [],
    opens: 0,
    starts: 0,
    closes: Infinity,
    share: 1,
    shareNow: 1,
    perMinute,
    free: Infinity,
    firstFree: 0,
    freed: Infinity,
    drawn: Infinity,
    called: Math.floor((now / minute) * perMinute),
    passed: Math.floor((now / minute) * perMinute),
    groups: new Map(),
    after: 2000,
    most: 60_000,
    rest: 120_000,
    jitter: 0.3,
    listenAhead: 100,
    now,
  };
}

/** Numbers from 0 to 1, evenly spread, the same in every run: multiples of the golden ratio. */
function spread(): () => number {
  let last = 0;
  return () => (last = (last + 0.6180339887498949) % 1);
}

interface Ask {
  at: number;
  place: Place;
}

/** The polls to come, ordered by time to the millisecond. */
class Calendar {
  readonly #days = new Map<number, Ask[]>();
  #today = 0;

  constructor(asks: Ask[]) {
    for (const ask of asks) this.put(ask);
  }

  put(ask: Ask): void {
    const day = Math.max(Math.floor(ask.at), this.#today);
    const asks = this.#days.get(day);
    if (asks) asks.push(ask);
    else this.#days.set(day, [ask]);
  }

  take(): Ask | undefined {
    for (; this.#days.size > 0; this.#days.delete(this.#today++)) {
      const ask = this.#days.get(this.#today)?.pop();
      if (ask) return ask;
    }
    return undefined;
  }
}

for (const people of [1_000, 10_000, 100_000]) console.log(JSON.stringify(measure(people)));
