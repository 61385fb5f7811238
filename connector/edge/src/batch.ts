// Touches and releases, sent to rooms in batches. Visitors do not wait for them.
import type { RoomClient, Runtime } from "./room.ts";
import type { Session } from "./session.ts";

const gatherTime = 1000; // milliseconds
const maxBatch = 500; // sessions in a request
const maxWaiting = 5000; // queued sessions of a room
const slice = 50; // milliseconds between checks for a full batch
const maxLate = 5000; // milliseconds after which delayed work counts as stopped by the platform

/** WaitUntil keeps the isolate running until work is settled. */
export type WaitUntil = (work: Promise<unknown>) => void;

/** Kind is an update of a session: the visitor is active, or done. */
export type Kind = "touch" | "release";

interface Waiting {
  list: { kind: Kind; session: Session }[];
  takenUntil: number; // until then, a request's work sends them, or was stopped
}

/** Batches queues updates for rooms, by URL. */
export class Batches {
  readonly #runtime: Runtime;
  readonly #waiting = new Map<string, Waiting>();
  readonly #onResult: (kind: Kind, session: Session, said: unknown) => void;

  /** onResult is called with a room's word for a session: "ok", "over" or "invalid". */
  constructor(runtime: Runtime, onResult: (kind: Kind, session: Session, said: unknown) => void) {
    [this.#runtime, this.#onResult] = [runtime, onResult];
  }

  /** add queues an update, sent after the given time at most. False: the queue is full. */
  add(rm: RoomClient, kind: Kind, session: Session, waitUntil: WaitUntil, gather = gatherTime): boolean {
    const waiting = this.#waiting.get(rm.room.url) ?? { list: [], takenUntil: 0 };
    const [hasRoom, now] = [waiting.list.length < maxWaiting, this.#runtime.now()];
    if (hasRoom) waiting.list.push({ kind, session });
    this.#waiting.set(rm.room.url, waiting);
    if (waiting.takenUntil <= now || gather === 0) {
      waiting.takenUntil = now + gather + maxLate;
      waitUntil(this.#send(rm, waiting, gather));
    }
    return hasRoom;
  }

  /** send gathers and sends updates. Those that do not arrive stay queued. */
  async #send(rm: RoomClient, waiting: Waiting, gather: number): Promise<void> {
    for (let at = 0; at < gather && waiting.list.length < maxBatch; at += slice)
      await new Promise((done) => setTimeout(done, slice));
    while (waiting.list.length > 0) {
      waiting.takenUntil = this.#runtime.now() + maxLate;
      const batch = waiting.list.splice(0, maxBatch);
      const of = (kind: Kind) => batch.filter((each) => each.kind === kind).map(({ session }) => session);
      if (await this.#tell(rm, { touch: of("touch"), release: of("release") })) continue;
      waiting.list = [...batch, ...waiting.list].slice(0, maxWaiting);
      break;
    }
    waiting.takenUntil = 0;
  }

  /** tell sends one batch. False: it did not arrive. */
  async #tell(rm: RoomClient, all: Record<Kind, Session[]>): Promise<boolean> {
    const tokens = (list: Session[]): string[] => list.map(({ token }) => token);
    const body = JSON.stringify({ touch: tokens(all.touch), release: tokens(all.release) });
    const headers = { "Content-Type": "application/json" };
    const answer = await rm.call("POST", `${rm.room.url}/sessions/batch`, { headers, body }).catch(() => undefined);
    if (!answer || answer.status === 429) return false;
    if (answer.status !== 200) {
      this.#runtime.log("warn", "room refuses session updates", { room: rm.name, status: answer.status });
      return true;
    }
    const said = readJSON(answer.body);
    for (const kind of ["touch", "release"] as const)
      for (const [i, session] of all[kind].entries()) this.#onResult(kind, session, listOf(said[kind])[i]);
    return true;
  }
}

/** listOf returns a list in a response; empty if it is not one. */
export function listOf(v: unknown): unknown[] {
  return Array.isArray(v) ? (v as unknown[]) : [];
}

/** readJSON parses an object in a response; empty if it is not one. */
export function readJSON(text: string): Record<string, unknown> {
  try {
    const v: unknown = JSON.parse(text);
    return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
