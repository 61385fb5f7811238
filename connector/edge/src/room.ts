// Requests to a room, and what this isolate knows about its server.
import { base64url, fromBytes, toBytes } from "./bytes.ts";
import { Gate, maxSlides } from "./gate.ts";
import { isObject } from "./match.ts";
import { Observed } from "./observed.ts";
import { type Keys, type Pass, usableKeys } from "./pass.ts";
import { familyOf, proofPrefix } from "./proof.ts";
import { read } from "./read.ts";
import type { ReturnSigning } from "./return.ts";
import type { Room } from "./rules.ts";
import { cookiePrefix, networkOf, noBind, noKey, noTicket, type Session } from "./session.ts";
import { parseTime } from "./time.ts";

export const callTimeout = 3000; // milliseconds for a request to a room
const keysInterval = 10_000; // milliseconds between key fetches because of unknown key ids
const maxAnswer = 64 << 10; // bytes of a response
const maxOpenings = 100; // remembered fail-open intervals

/** outgoing returns a request to a room or server, with a timeout if the platform supports it. */
export function outgoing(url: string, init: RequestInit): Request {
  const signal = typeof AbortSignal === "undefined" ? {} : { signal: AbortSignal.timeout(callTimeout) };
  return new Request(url, { ...init, ...signal, redirect: "manual" });
}

/** newID returns 16 random bytes as characters. */
export function newID(): string {
  return fromBytes(crypto.getRandomValues(new Uint8Array(16)));
}

/** waitWhile polls until another request's work is done: promises of one request must not be awaited in another. */
export async function waitWhile(isBusy: () => boolean): Promise<void> {
  for (let i = 0; i < 60 && isBusy(); i++) await new Promise((done) => setTimeout(done, 50));
}

/** Refusal is the reason why there is no session. */
export class Refusal extends Error {
  readonly why: "pass" | "busy" | "unreachable";
  constructor(why: Refusal["why"], detail: string, cause?: unknown) {
    super(detail, { cause });
    this.why = why;
  }
}

/** FailOpen is an interval in which requests were admitted without a pass, because the room was out of reach. */
export interface FailOpen {
  id: string; // in reports
  from: number;
  until?: number; // undefined: still open
  requests: number; // admitted without a pass
  isRecorded?: boolean; // in the room's transcript
}

/** RoomState is what is known about a room's server. Times are milliseconds since 1970. */
export class RoomState {
  keys: Keys | undefined; // undefined: never fetched
  asked = -Infinity; // last key fetch because of an unknown key id
  probed = -Infinity;
  busyUntil = 0; // another request is fetching the keys
  isKnown = false; // the room has responded, or failed to
  since: number | undefined; // undefined: reachable
  latest = 0; // last request not shaped by a visitor that confirmed this
  failOpen: FailOpen[] = [];
  returns: ReturnSigning | undefined; // undefined: not received yet
  readonly gate = new Gate();
  readonly observed = new Observed();
}

/** Runtime is the connector's access to the outside. */
export interface Runtime {
  ask: (request: Request) => Promise<Response>;
  now: () => number;
  log: (level: "error" | "warn" | "info", text: string, detail: Record<string, unknown>) => void;
}

export class RoomClient {
  readonly name: string;
  readonly room: Room;
  readonly tag: string;
  readonly roomState: RoomState;
  readonly cookie: string; // name of the session cookie
  readonly proof: string; // name of the proof cookie
  readonly #runtime: Runtime;

  private constructor(name: string, room: Room, tag: string, roomState: RoomState, runtime: Runtime) {
    [this.name, this.room, this.tag, this.roomState, this.#runtime] = [name, room, tag, roomState, runtime];
    this.cookie = cookiePrefix + name;
    this.proof = proofPrefix + name;
  }

  /** make returns a room with a tag. The state survives while the room keeps its URL and origin. */
  static make(name: string, room: Room, tag: string, before: RoomClient | undefined, runtime: Runtime): RoomClient {
    const isSame = before?.room.url === room.url && before.room.origin === room.origin;
    return new RoomClient(name, room, tag, isSame && before ? before.roomState : new RoomState(), runtime);
  }

  /** bindOf returns the network or browser family that a client's sessions are tied to. */
  async bindOf(client: string, agent: string): Promise<string> {
    if (this.room.bind === "browser") return familyOf(agent);
    return this.room.bind === "network" ? networkOf(client) : noBind;
  }

  /**
   * call sends a request to the room, and records whether it responded. POST requests
   * are shaped by visitors. It throws a Refusal.
   */
  async call(
    method: "GET" | "POST",
    url: string,
    more: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<{ status: number; body: string }> {
    try {
      const response = await this.#runtime.ask(outgoing(url, { method, ...more }));
      const body = await read(response, maxAnswer);
      if (response.status >= 500) throw new Error(`status ${response.status}`);
      this.#recordAnswer(false);
      return { status: response.status, body };
    } catch (error) {
      this.#recordAnswer(method === "POST", error);
      throw new Refusal("unreachable", `ask ${this.name}: room cannot be reached`, error);
    }
  }

  /**
   * recordAnswer records whether the room responded. If a request shaped by a visitor fails, the next visitor
   * probes.
   */
  #recordAnswer(isShaped: boolean, error?: unknown): void {
    const [roomState, now] = [this.roomState, this.#runtime.now()];
    roomState.isKnown = true;
    if (error !== undefined && isShaped) roomState.probed = -Infinity;
    else roomState.latest = now;
    if (error !== undefined && roomState.since === undefined) {
      roomState.since = now;
      this.#runtime.log("error", "room cannot be reached", {
        room: this.name,
        failure: this.room.failure,
        error: String(error),
      });
    } else if (error === undefined && roomState.since !== undefined) {
      this.#runtime.log("info", "room can be reached again", { room: this.name, after: now - roomState.since });
      roomState.since = undefined;
      const last = roomState.failOpen[roomState.failOpen.length - 1];
      if (last && last.until === undefined) last.until = now;
    }
  }

  /**
   * failsOpen reports whether the connector fails open for the room, and counts the request.
   * The room must have failed at the beginning and at the end of the delay, the
   * second time on a request that no visitor shaped. One failure does not open
   * anything, and neither can a visitor.
   */
  failsOpen(): boolean {
    const { roomState, room } = this;
    if (
      room.failOpenAfter === undefined ||
      roomState.since === undefined ||
      roomState.latest - roomState.since < room.failOpenAfter
    )
      return false;
    let last = roomState.failOpen[roomState.failOpen.length - 1];
    if (!last || last.until !== undefined) {
      last = { id: base64url(toBytes(newID())), from: this.#runtime.now(), requests: 0 };
      roomState.failOpen = [...roomState.failOpen, last].slice(-maxOpenings);
      this.#runtime.log("error", "room is out of reach: letting requests through without a pass", {
        room: this.name,
        since: roomState.since,
      });
    }
    last.requests++;
    return true;
  }

  /** key returns a public key; undefined: the room has none with that id. It throws a Refusal. */
  async key(id: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const { roomState } = this;
    if (roomState.keys?.has(id)) return roomState.keys.get(id);
    await this.waitForKeys();
    const now = this.#runtime.now();
    if (!roomState.keys?.has(id) && now - roomState.asked >= keysInterval) {
      roomState.asked = now;
      await this.fetchKeys();
    }
    if (!roomState.keys) throw new Refusal("unreachable", `the keys of ${this.name} could not be fetched`);
    return roomState.keys.get(id);
  }

  /** waitForKeys waits while another request fetches the keys. */
  waitForKeys(): Promise<void> {
    return waitWhile(() => this.roomState.busyUntil > this.#runtime.now());
  }

  /** fetchKeys fetches the room's keys. It throws a Refusal. */
  async fetchKeys(): Promise<void> {
    const { roomState, room } = this;
    const now = this.#runtime.now();
    [roomState.probed, roomState.busyUntil] = [now, now + callTimeout];
    try {
      const found = await this.#read(`${room.url}/.well-known/openid-configuration`);
      const address = isObject(found) && found.issuer === room.url ? found.jwks_uri : undefined;
      if (typeof address !== "string" || !address.startsWith(`${room.url}/`))
        throw new Refusal("pass", `keys of ${room.url}: the room names itself differently`);
      const keys = usableKeys(await this.#read(address));
      if (keys.size > 0) roomState.keys = keys;
    } finally {
      roomState.busyUntil = 0;
    }
  }

  async #read(url: string): Promise<unknown> {
    const { status, body } = await this.call("GET", url);
    try {
      if (status === 200) return JSON.parse(body);
    } catch {
      // handled like a missing document
    }
    throw new Refusal("pass", `read ${url}: status ${status}`);
  }

  /** free returns a new unqueued session. */
  free(length: number, bind: string): Session {
    const issued = this.#runtime.now();
    return {
      room: this.tag,
      ticket: noTicket,
      pass: newID(),
      issued,
      ends: issued + length,
      most: issued + maxSlides * length,
      length,
      bind,
      key: noKey,
      token: "",
    };
  }

  /**
   * redeem redeems a pass and returns the session. The same client name may do so again for 30 s. It throws a
   * Refusal.
   */
  async redeem(p: Pass, client: string, agent: string, name: string): Promise<Session> {
    const headers = { Authorization: `Bearer ${p.token}`, "Proofline-Client": name };
    const { status, body } = await this.call("POST", `${this.room.url}/passes/${p.id}/redeem`, { headers });
    if (status === 429 || status === 408) throw new Refusal("busy", "room is busy");
    const said = status === 200 ? answerOf(body) : undefined;
    if (!said || said.pass !== p.id || said.most <= said.ends)
      throw new Refusal("pass", `redeem at ${this.name}: status ${status}`);
    const length = Math.trunc((said.most - said.ends) / (maxSlides - 1));
    return {
      room: this.tag,
      ticket: p.ticket,
      pass: p.pass,
      issued: this.#runtime.now(),
      ends: said.ends,
      most: said.most,
      length,
      bind: await this.bindOf(client, agent),
      key: noKey,
      token: p.token,
    };
  }
}

function answerOf(body: string): { pass: string; ends: number; most: number } | undefined {
  try {
    const { pass_id: pass, ends, ends_at_most: most } = JSON.parse(body) as Record<string, unknown>;
    const times = [ends, most].map((t) => (typeof t === "string" ? parseTime(t, Math.floor) : undefined));
    return typeof pass === "string" && times[0] !== undefined && times[1] !== undefined
      ? { pass, ends: times[0], most: times[1] }
      : undefined;
  } catch {
    return undefined;
  }
}
