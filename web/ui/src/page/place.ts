import type { Next } from "./poll.ts";
import { type Room, stateWithout } from "./room.ts";

/** The visitor's place, as the server last described it. */
export interface Place {
  state: string; // as in package page of the server
  room: string; // path
  now: number; // when the server wrote this, milliseconds since the Unix epoch
  poll: number; // milliseconds until the first poll of the room's state
  opens: number;
  starts: number;
  paused: boolean;
  claimsFrozen: boolean; // in a pause: called visitors cannot claim either
  gate: boolean; // the page has words for a site that lets people in without waiting
  without: string; // of a place that is gone: the state of the page without it
  cookie: boolean; // the secret came along as a cookie
  ticket: string | undefined;
  joined: number;
  window: number;
  lane: string | undefined;
  closes: number; // when the group closes
  draws: number;
  base: number; // people in earlier groups
  drawn: number; // people who had a place
  position: number | undefined;
  rank: number | undefined; // the position, if places of nobody are not counted
  called: number;
  passed: number; // people whose places were called
  slotEnds: number; // when the page is to speak of the next slot; Infinity: never
  left: number; // when called: milliseconds to go in
}

/** Reads the data attributes of the page. */
export function readPlace(data: DOMStringMap): Place {
  const number = (text: string | undefined) => Number(text ?? 0);
  const maybe = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  return {
    state: data.state ?? "",
    room: data.room ?? "",
    now: number(data.now),
    poll: number(data.poll),
    opens: number(data.opens),
    starts: number(data.starts),
    paused: data.paused !== undefined,
    claimsFrozen: data.claimsFrozen !== undefined,
    gate: data.gate !== undefined,
    without: data.without ?? "",
    cookie: data.cookie !== undefined,
    ticket: data.ticket,
    joined: number(data.joined),
    window: number(data.window),
    lane: data.lane,
    closes: number(data.closes),
    draws: number(data.draws),
    base: number(data.base),
    drawn: number(data.drawn ?? data.base),
    position: maybe(data.position),
    rank: maybe(data.rank ?? data.position),
    called: number(data.called),
    passed: number(data.passed ?? data.called),
    slotEnds: maybe(data.slotEnds) ?? Infinity,
    left: number(data.left),
  };
}

/** Reports whether the room's state implies that the server's page for a place has changed. */
export function hasMoved(place: Place, room: Room, now: number): boolean {
  const over = room.phase === "ended";
  if (isWithdrawn(place, room)) return true;
  if (room.open && !place.gate && !["upcoming", "called"].includes(place.state) && !isFinal(place)) return true;
  switch (place.state) {
    case "upcoming":
      return over || room.phase === "closed" || room.opens !== place.opens;
    case "joinable":
    case "full":
    case "closed":
      return stateWithout(room, now) !== place.state || now >= place.slotEnds;
    case "waiting": // windows are drawn in order, so mine is when more is drawn than was before it
      return over || room.drawn > place.drawn;
    case "drawn":
      return over || room.called >= (place.position ?? Infinity);
    case "called": // in a pause the time to go in stands still: the server knows how much is left
      return (
        over ||
        room.paused !== place.paused ||
        room.claimsFrozen !== place.claimsFrozen ||
        (!room.paused && now >= place.now + place.left)
      );
    case "over":
    case "missed":
    case "left":
      return stateWithout(room, now) !== place.without;
    case "revoked":
      return over;
  }
  return false;
}

/** Reports whether the place is one that can be used: not settled, and not ended. */
export function isLive({ state }: Place): boolean {
  return state === "waiting" || state === "drawn" || state === "called";
}

/** Reports whether a ticket, as the server's document describes it, has a place that was not passed over. */
export function isStanding(text: string): boolean {
  const { status } = JSON.parse(text) as { status: string };
  return status !== "skipped";
}

/** Reports whether the ticket of the place is among the latest that the room lists as revoked. */
function isWithdrawn(place: Place, room: Room): boolean {
  return isLive(place) && room.withdrawn.some((start) => place.ticket?.startsWith(start));
}

/**
 * Reports whether a position is later than the first one shown for the same
 * ticket, which an honest server never shows.
 */
export function isLater(place: Place, shown: number | undefined): boolean {
  return place.position !== undefined && shown !== undefined && place.position > shown;
}

/**
 * Reports whether nothing more can happen to what the page shows. Until the room ends, a new place can be taken. The
 * page of a revoked place has no state without it if the place cannot be given back.
 */
export function isFinal({ state, without }: Place): boolean {
  return ["admitted", "ended"].includes(state) || without === "ended" || (state === "revoked" && without === "");
}

/** How far the line has been called, by the newer of what is known. */
export function calledUpTo(place: Place, room: Pick<Room, "called">): number {
  return Math.max(place.called, room.called);
}

/** How many people are still to be called before this place: exactly, once drawn. Places of nobody are not counted. */
export function ahead(place: Place, room: Pick<Room, "passed" | "groups">): { min: number; max: number } {
  const passed = Math.max(place.passed, room.passed);
  if (place.rank !== undefined) {
    const exactly = Math.max(0, place.rank - 1 - passed);
    return { min: exactly, max: exactly };
  }
  const min = Math.max(0, place.base - passed);
  return { min, max: min + Math.max(1, room.groups.get(place.window) ?? 1) - 1 };
}

/**
 * Reports whether a place is near enough to the front to listen to the event stream: in a pause too, because its end
 * may bring this visitor's call.
 */
export function isNear(place: Place, room: Room): boolean {
  if (place.ticket === undefined) return false;
  return place.state === "drawn" && ahead(place, room).min < room.listenAhead;
}

const minPoll = 2_000; // milliseconds
const maxPoll = 60_000;
/** The next poll is after this share of the time until something can happen. */
const share = 1 / 4;
/** The shortest delay of the poll at the end of the claim time, in milliseconds. */
const lastLook = 500;

/**
 * When to poll again: at the server's interval near the front, later the further
 * away the next possible change of this place is.
 */
export function nextPoll(place: Place, room: Room, now: number): Next {
  // Before the start the server's interval is about the start, which says nothing about draws.
  const least = room.phase === "open" ? minPoll : room.after;
  const before = (moment: number) => Math.max(Math.min((moment - now) * share, room.most), least);
  const { jitter } = room;
  switch (place.state) {
    case "waiting":
      return { after: before(place.draws), jitter };
    case "drawn":
      return { after: before(Math.max(now, room.starts) + callTime(ahead(place, room).min, room.perMinute)), jitter };
    case "called":
      return { after: Math.min(room.after, Math.max(lastLook, place.now + place.left - now)), jitter };
    case "joinable":
    case "full":
      return { after: Math.max(maxPoll / 2, room.after), jitter };
    case "closed":
    case "revoked":
      return { after: room.rest, jitter };
    case "over":
    case "missed":
    case "left": // visitors that wait for a full line have no place either
      return { after: place.without === "full" ? Math.max(maxPoll / 2, room.after) : room.rest, jitter };
  }
  return { after: room.after, jitter };
}

/** How long it takes to call a number of visitors, in milliseconds. */
export function callTime(people: number, perMinute: number): number {
  return (people / Math.max(perMinute, 1)) * 60_000;
}
