// A room as the connector sees it, and what this isolate knows of its server.
import { base64url, fromBytes, toBytes } from "./bytes.ts";
import { Gate, maxSlides } from "./gate.ts";
import { isObject } from "./match.ts";
import { Observed } from "./observed.ts";
import { usableKeys, type Keys, type Pass } from "./pass.ts";
import { read } from "./read.ts";
import type { Returns } from "./return.ts";
import type { Room } from "./rules.ts";
import { familyOf, proofPrefix } from "./proof.ts";
import { cookiePrefix, networkOf, noBind, noKey, noTicket, type Session } from "./session.ts";
import { parseTime } from "./time.ts";

export const callTimeout = 3000; // milliseconds, of one request to a room
const keysAgain = 10_000; // between fetches of keys because of unknown ones
const maxAnswer = 64 << 10; // bytes
const maxOpenings = 100; // remembered

/** outgoing returns a request to a room, or for rules, that ends in time where the platform can do that. */
export function outgoing(url: string, init: RequestInit): Request {
  const signal = typeof AbortSignal === "undefined" ? {} : { signal: AbortSignal.timeout(callTimeout) };
  return new Request(url, { ...init, ...signal, redirect: "manual" });
}

/** newID returns 16 random bytes, as characters. */
export function newID(): string {
  return fromBytes(crypto.getRandomValues(new Uint8Array(16)));
}

/** waitWhile waits for another request's work. Promises of one request must not be awaited in another. */
export async function waitWhile(isBusy: () => boolean): Promise<void> {
  for (let i = 0; i < 60 && isBusy(); i++) await new Promise((done) => setTimeout(done, 50));
}

/** Refusal is why a room gives no session. */
export class Refusal extends Error {
  readonly why: "pass" | "busy" | "unreachable";
  constructor(why: Refusal["why"], detail: string, cause?: unknown) {
    super(detail, { cause });
    this.why = why;
  }
}

/** Opening is a time in which everybody was let through, as a room was out of reach. */
export interface Opening {
  id: string; // in reports
  from: number;
  until?: number; // undefined: it goes on
  let: number; // requests let through without a pass
  isRecorded?: boolean; // in the room's transcript
}

/** Link is what is known of a room's server. Times are milliseconds since 1970. */
export class Link {
  keys: Keys | undefined; // undefined: never had
  asked = -Infinity; // for keys because of an unknown one
  probed = -Infinity;
  busyUntil = 0; // another request asks for the keys
  isKnown = false; // the room has answered, or failed to
  since: number | undefined; // out of reach since then
  latest = 0; // of what was heard that no visitor can bring about
  openings: Opening[] = [];
  returns: Returns | undefined; // undefined: never had
  readonly gate = new Gate();
  readonly observed = new Observed();
}

/** World is what doors need from outside. */
export interface World {
  ask: (request: Request) => Promise<Response>;
  now: () => number;
  log: (level: "error" | "warn" | "info", text: string, detail: Record<string, unknown>) => void;
}

export class Door {
  readonly name: string;
  readonly room: Room;
  readonly tag: string;
  readonly link: Link;
  readonly cookie: string; // of a session: its name
  readonly proof: string; // of a proof, likewise
  readonly #world: World;

  private constructor(name: string, room: Room, tag: string, link: Link, world: World) {
    [this.name, this.room, this.tag, this.link, this.#world] = [name, room, tag, link, world];
    this.cookie = cookiePrefix + name;
    this.proof = proofPrefix + name;
  }

  /** make returns a door of a room with that tag. The link is the same as long as the room is. */
  static make(name: string, room: Room, tag: string, before: Door | undefined, world: World): Door {
    const isSame = before?.room.url === room.url && before.room.origin === room.origin;
    return new Door(name, room, tag, isSame && before ? before.link : new Link(), world);
  }

  /** bindOf returns what sessions of a client are tied to. */
  async bindOf(client: string, agent: string): Promise<string> {
    if (this.room.bind === "browser") return familyOf(agent);
    return this.room.bind === "network" ? networkOf(client) : noBind;
  }

  /**
   * call sends a request to the room, and remembers whether there was an answer.
   * A POST is shaped by visitors. It throws a Refusal.
   */
  async call(method: "GET" | "POST", url: string, more: { headers?: Record<string, string>; body?: string } = {}): Promise<{ status: number; body: string }> {
    try {
      const response = await this.#world.ask(outgoing(url, { method, ...more }));
      const body = await read(response, maxAnswer);
      if (response.status >= 500) throw new Error(`status ${response.status}`);
      this.#heard(false);
      return { status: response.status, body };
    } catch (error) {
      this.#heard(method === "POST", error);
      throw new Refusal("unreachable", `ask ${this.name}: room cannot be reached`, error);
    }
  }

  /** heard keeps whether the room answered. After the failure of a request that a visitor has shaped, the next visitor asks whether it is there. */
  #heard(isShaped: boolean, error?: unknown): void {
    const [link, now] = [this.link, this.#world.now()];
    link.isKnown = true;
    if (error !== undefined && isShaped) link.probed = -Infinity;
    else link.latest = now;
    if (error !== undefined && link.since === undefined) {
      link.since = now;
      this.#world.log("error", "room cannot be reached", { room: this.name, failure: this.room.failure, error: String(error) });
    } else if (error === undefined && link.since !== undefined) {
      this.#world.log("info", "room can be reached again", { room: this.name, after: now - link.since });
      link.since = undefined;
      const last = link.openings[link.openings.length - 1];
      if (last && last.until === undefined) last.until = now;
    }
  }

  /**
   * opens tells whether everybody is let through by now, and counts that one
   * is. The room must have failed to answer at the beginning and at the end of
   * that time, the second time to a request that no visitor has shaped: neither
   * one failure nor a visitor opens anything.
   */
  opens(): boolean {
    const { link, room } = this;
    if (room.openAfter === undefined || link.since === undefined || link.latest - link.since < room.openAfter) return false;
    let last = link.openings[link.openings.length - 1];
    if (!last || last.until !== undefined) {
      last = { id: base64url(toBytes(newID())), from: this.#world.now(), let: 0 };
      link.openings = [...link.openings, last].slice(-maxOpenings);
      this.#world.log("error", "everybody is let through, for the room is out of reach", { room: this.name, since: link.since });
    }
    last.let++;
    return true;
  }

  /** key returns a public key; undefined: the room has none of that id. It throws a Refusal. */
  async key(id: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const { link } = this;
    if (link.keys?.has(id)) return link.keys.get(id);
    await this.others();
    const now = this.#world.now();
    if (!link.keys?.has(id) && now - link.asked >= keysAgain) {
      link.asked = now;
      await this.fetchKeys();
    }
    if (!link.keys) throw new Refusal("unreachable", `keys of ${this.name} are not known`);
    return link.keys.get(id);
  }

  /** others waits while another request asks for the keys. */
  others(): Promise<void> {
    return waitWhile(() => this.link.busyUntil > this.#world.now());
  }

  /** fetchKeys asks the room for its keys. It throws a Refusal. */
  async fetchKeys(): Promise<void> {
    const { link, room } = this;
    const now = this.#world.now();
    [link.probed, link.busyUntil] = [now, now + callTimeout];
    try {
      const found = await this.#read(`${room.url}/.well-known/openid-configuration`);
      const address = isObject(found) && found["issuer"] === room.url ? found["jwks_uri"] : undefined;
      if (typeof address !== "string" || !address.startsWith(`${room.url}/`)) throw new Refusal("pass", `keys of ${room.url}: the room says that it is another`);
      const keys = usableKeys(await this.#read(address));
      if (keys.size > 0) link.keys = keys;
    } finally {
      link.busyUntil = 0;
    }
  }

  async #read(url: string): Promise<unknown> {
    const { status, body } = await this.call("GET", url);
    try {
      if (status === 200) return JSON.parse(body);
    } catch {
      // as if there were no document
    }
    throw new Refusal("pass", `read ${url}: status ${status}`);
  }

  /** free returns a free session that begins. */
  free(length: number, bind: string): Session {
    const issued = this.#world.now();
    return { room: this.tag, ticket: noTicket, pass: newID(), issued, ends: issued + length, most: issued + maxSlides * length, length, bind, key: noKey, token: "" };
  }

  /** redeem uses a pass up and returns the session that begins. The same name of a client may do so again for 30 s. It throws a Refusal. */
  async redeem(p: Pass, client: string, agent: string, name: string): Promise<Session> {
    const headers = { Authorization: `Bearer ${p.token}`, "Proofline-Client": name };
    const { status, body } = await this.call("POST", `${this.room.url}/passes/${p.id}/redeem`, { headers });
    if (status === 429 || status === 408) throw new Refusal("busy", "room is busy");
    const said = status === 200 ? answerOf(body) : undefined;
    if (!said || said.pass !== p.id || said.most <= said.ends) throw new Refusal("pass", `redeem at ${this.name}: status ${status}`);
    const length = Math.trunc((said.most - said.ends) / (maxSlides - 1));
    return { room: this.tag, ticket: p.ticket, pass: p.pass, issued: this.#world.now(), ends: said.ends, most: said.most, length, bind: await this.bindOf(client, agent), key: noKey, token: p.token };
  }
}

function answerOf(body: string): { pass: string; ends: number; most: number } | undefined {
  try {
    const { pass_id: pass, ends, ends_at_most: most } = JSON.parse(body) as Record<string, unknown>;
    const times = [ends, most].map((t) => (typeof t === "string" ? parseTime(t, Math.floor) : undefined));
    return typeof pass === "string" && times[0] !== undefined && times[1] !== undefined ? { pass, ends: times[0], most: times[1] } : undefined;
  } catch {
    return undefined;
  }
}
