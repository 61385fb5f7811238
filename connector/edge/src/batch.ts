// What rooms are told about sessions, in batches. Visitors do not wait for it.
import type { Door, World } from "./door.ts";
import type { Session } from "./session.ts";

const gatherTime = 1000; // milliseconds
const maxBatch = 500; // sessions of one request
const maxWaiting = 5000; // sessions of one room
const slice = 50; // milliseconds between looks whether there are enough
const maxLate = 5000; // milliseconds, after which work that was begun counts as stopped

/** Under keeps the isolate running until work is settled. */
export type Under = (work: Promise<unknown>) => void;

/** Kind is what a room is told: a visitor is there, or the visit is over. */
export type Kind = "touch" | "release";

interface Waiting {
  list: { kind: Kind; session: Session }[];
  takenUntil: number; // by then some request's work has sent them, or was stopped
}

/** Batches are what waits for the rooms, by URL. */
export class Batches {
  readonly #world: World;
  readonly #waiting = new Map<string, Waiting>();
  readonly #told: (kind: Kind, session: Session, said: unknown) => void;

  /** told hears what a room says about a session: "ok", "over" or "invalid". */
  constructor(world: World, told: (kind: Kind, session: Session, said: unknown) => void) {
    [this.#world, this.#told] = [world, told];
  }

  /** add has a room told, after so many milliseconds at most. False: too much is waiting. */
  add(door: Door, kind: Kind, session: Session, under: Under, gather = gatherTime): boolean {
    const waiting = this.#waiting.get(door.room.url) ?? { list: [], takenUntil: 0 };
    const [hasRoom, now] = [waiting.list.length < maxWaiting, this.#world.now()];
    if (hasRoom) waiting.list.push({ kind, session });
    this.#waiting.set(door.room.url, waiting);
    if (waiting.takenUntil <= now || gather === 0) {
      waiting.takenUntil = now + gather + maxLate;
      under(this.#send(door, waiting, gather));
    }
    return hasRoom;
  }

  /** send gathers, and tells the room what is waiting. What it does not hear waits on. */
  async #send(door: Door, waiting: Waiting, gather: number): Promise<void> {
    for (let at = 0; at < gather && waiting.list.length < maxBatch; at += slice) await new Promise((done) => setTimeout(done, slice));
    while (waiting.list.length > 0) {
      waiting.takenUntil = this.#world.now() + maxLate;
      const batch = waiting.list.splice(0, maxBatch);
      const of = (kind: Kind) => batch.filter((each) => each.kind === kind).map(({ session }) => session);
      if (await this.#tell(door, { touch: of("touch"), release: of("release") })) continue;
      waiting.list = [...batch, ...waiting.list].slice(0, maxWaiting);
      break;
    }
    waiting.takenUntil = 0;
  }

  /** tell sends one batch. False: the room did not hear it. */
  async #tell(door: Door, all: Record<Kind, Session[]>): Promise<boolean> {
    const tokens = (list: Session[]): string[] => list.map(({ token }) => token);
    const body = JSON.stringify({ touch: tokens(all.touch), release: tokens(all.release) });
    const headers = { "Content-Type": "application/json" };
    const answer = await door.call("POST", `${door.room.url}/sessions/batch`, { headers, body }).catch(() => undefined);
    if (!answer || answer.status === 429) return false;
    if (answer.status !== 200) {
      this.#world.log("warn", "room does not take what it is told", { room: door.name, status: answer.status });
      return true;
    }
    const said = readJSON(answer.body);
    for (const kind of ["touch", "release"] as const) all[kind].forEach((session, i) => this.#told(kind, session, listOf(said[kind])[i]));
    return true;
  }
}

/** listOf returns a list of an answer. */
export function listOf(v: unknown): unknown[] {
  return Array.isArray(v) ? (v as unknown[]) : [];
}

/** readJSON reads an object of an answer, which is empty if there is none. */
export function readJSON(text: string): Record<string, unknown> {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
