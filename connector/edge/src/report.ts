// Reports to the server: what this isolate did, free sessions, and times in
// which everybody was let through. See "Reports" of connector/rules/FORMAT.md.
import { listOf, readJSON, type Under } from "./batch.ts";
import { base64url, fromBase64url, fromBytes, toBytes } from "./bytes.ts";
import { callTimeout, newID, outgoing, waitWhile, type Door, type World } from "./door.ts";
import type { Gate, News, Notice } from "./gate.ts";
import { withObserved } from "./observed.ts";
import { read } from "./read.ts";
import { returnsOf } from "./return.ts";

const netAgain = 1000; // milliseconds between reports while a room is in mode safety-net
const othersAgain = 10_000; // else
const maxLate = 5000; // milliseconds, after which work that was begun counts as stopped
const maxIDs = 30_000; // of one report, which has at most 1 MiB
const maxUnguarded = 20; // of each room
const maxAnswer = 1 << 20; // bytes
const maxRooms = 100; // of one report
const maxOver = 2000; // sessions that are over, of each room in an answer
const day = 86_400_000;
const tokenSoon = 14 * day; // before its end, in which the log tells of a token
const lastTime = 8.64e15; // that a Date can be

declare const buildVersion: string; // build.mjs says it

/** Reporting is where reports go, and by what right. */
export interface Reporting {
  server: string; // such as https://queue.example.com
  token: string;
}

/** Ground is the rules in force, as reports have them. */
export interface Ground {
  name: string; // of the site; empty: the rules are not signed
  serial: bigint;
  doors: Door[];
}

/** Reporter tells the server, at most so often, when requests come. */
export class Reporter {
  readonly #to: Reporting;
  readonly #world: World;
  readonly #counts: Record<string, number>;
  readonly #over: (pass: string) => void;
  readonly #known = new Map<string, Door>(); // rooms of the rules, and others of which there is something to say, by URL
  #node = ""; // some platforms give no random bytes before the first request
  #made = -Infinity; // the latest report
  #busyUntil = 0;
  #nextUntil = 0; // by then the next one was made by a request that waits, or that was stopped
  #turn = 0;
  readonly #strange = new Map<string, string>(); // what the log said last of the answers of a room, by URL
  #refused = ""; // why the latest report was not answered
  tokenEnds: number | undefined; // undefined: never, or nobody has said
  #tokenTold = -Infinity; // when the log told of that

  /** over hears of sessions that are over, wherever the site has ended them. */
  constructor(to: Reporting, world: World, counts: Record<string, number>, over: (pass: string) => void) {
    [this.#to, this.#world, this.#counts, this.#over] = [to, world, counts, over];
  }

  /**
   * tick reports if it is time to, or when it is and there is something to say:
   * no other request may come. Where instances are short-lived nothing waits,
   * and there must be something to say.
   */
  tick(ground: Ground, under: Under, isShort: boolean): void {
    const now = this.#world.now();
    const again = ground.doors.some(({ room }) => room.mode === "safety-net") ? netAgain : othersAgain;
    if (isShort) {
      if (ground.doors.some(hasNews)) under(this.#reportNext(ground, 0));
    } else if (now - this.#made >= again && this.#busyUntil <= now) under(this.#report(ground));
    else if (this.#nextUntil <= now && ground.doors.some(hasNews)) {
      this.#nextUntil = now + again + maxLate;
      under(this.#reportNext(ground, again));
    }
  }

  /** reportNext reports what the latest report does not say, later or when it is answered. */
  async #reportNext(ground: Ground, after: number): Promise<void> {
    if (after > 0) await new Promise((done) => setTimeout(done, after));
    this.#nextUntil = 0;
    await waitWhile(() => this.#busyUntil > this.#world.now());
    if (ground.doors.some(hasNews)) await this.#report(ground);
  }

  /** ready returns when a room's gate is known, or cannot be. Promises of one request must not be awaited in another. */
  async ready(door: Door, ground: Ground): Promise<void> {
    const { gate } = door.link;
    if (gate.isKnown(this.#world.now())) return;
    if (this.#busyUntil > this.#world.now()) await waitWhile(() => this.#busyUntil > this.#world.now());
    if (!gate.isKnown(this.#world.now())) await this.#report(ground);
  }

  async #report(ground: Ground): Promise<void> {
    const turn = ++this.#turn;
    [this.#made, this.#busyUntil] = [this.#world.now(), this.#world.now() + callTimeout];
    const told = this.#take(ground);
    try {
      const answer = await this.#ask(ground, told);
      if (turn === this.#turn) this.#hear(answer, told);
      this.#hearToken(answer["token_ends"]);
      this.#counts["reports"] = (this.#counts["reports"] ?? 0) + 1;
      this.#refused = "";
    } catch (error) {
      if (this.#refused !== String(error)) this.#world.log("error", "the server does not answer reports", { error: String(error) });
      this.#refused = String(error);
    } finally {
      if (turn === this.#turn) this.#busyUntil = 0;
      for (const { door } of told) door.link.gate.tried = this.#world.now();
    }
  }

  /** take gathers what a report says of each room. */
  #take(ground: Ground): { door: Door; news: News; body: object }[] {
    for (const [url, door] of this.#known) if (!hasNews(door)) this.#known.delete(url);
    const inNet = (door: Door): boolean => door.room.mode === "safety-net";
    for (const door of [...ground.doors.filter((d) => !inNet(d)), ...ground.doors.filter(inNet)]) this.#known.set(door.room.url, door);
    return [...this.#known.values()].slice(-maxRooms).map((door) => {
      const news = door.link.gate.take(Math.floor(maxIDs / this.#known.size));
      const over = door.link.openings.filter((o) => o.until !== undefined && !o.isRecorded).slice(0, maxUnguarded);
      const unguarded = over.map(({ id, from, until = 0, let: requests }) => ({ id, from, until: Math.max(until, from + 1), requests }));
      const all = Object.entries({ ...news, unguarded }).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : value > 0));
      return { door, news, body: { room: door.room.url, mode: door.room.mode, ...Object.fromEntries(all) } };
    });
  }

  async #ask({ name, serial, doors }: Ground, told: { body: object }[]): Promise<Record<string, unknown>> {
    this.#node ||= base64url(toBytes(newID()));
    const said = { node: this.#node, site: name, kind: "edge", version: buildVersion, counts: withObserved(this.#counts, doors, this.#world.now()), rooms: told.map(({ body }) => body) };
    const body = `{"serial":${serial},` + JSON.stringify(said).slice(1); // which a number cannot be
    const headers = { Authorization: `Bearer ${this.#to.token}`, "Content-Type": "application/json" };
    const answer = await this.#world.ask(outgoing(`${this.#to.server}/v1/connectors/report`, { method: "POST", headers, body }));
    const text = await read(answer, maxAnswer);
    if (answer.status === 401 || answer.status === 403) throw new Error(`status ${answer.status}: the token must be one of the organization, with the scope connect`);
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    return readJSON(text);
  }

  /** hear takes the answer of each room. */
  #hear(answer: Record<string, unknown>, told: { door: Door; news: News }[]): void {
    for (const each of listOf(answer["rooms"])) {
      const said = (each ?? {}) as Record<string, unknown>;
      const found = told.find(({ door }) => door.room.url === said["room"]);
      const notice = noticeOf(said);
      if (!found) continue;
      const { link } = found.door;
      const { gate, openings } = link;
      link.returns = returnsOf(said) ?? link.returns;
      if (notice) gate.heard(notice, Number(said["share"]), found.news, this.#world.now());
      this.#wonder(found.door, notice ? "" : String(said["error"] ?? "no gate"));
      for (const id of listOf(said["over"]).slice(0, maxOver)) this.#end(gate, id);
      for (const opening of openings) if (listOf(said["recorded"]).includes(opening.id)) opening.isRecorded = true;
    }
  }

  /** wonder logs what is strange about the answers of a room, once. */
  #wonder({ name, room }: Door, error: string): void {
    if (error && error !== this.#strange.get(room.url)) this.#world.log("warn", "the server says nothing of a room", { room: name, error });
    this.#strange.set(room.url, error);
  }

  /** hearToken takes when the token ends, and logs once a day that it is soon. */
  #hearToken(ends: unknown): void {
    const now = this.#world.now();
    this.tokenEnds = isCount(ends) && ends > 0 && ends <= lastTime ? ends : undefined;
    if (this.tokenEnds === undefined || this.tokenEnds - now > tokenSoon || now - this.#tokenTold < day) return;
    this.#tokenTold = now;
    this.#world.log("warn", "the token ends soon: give this connector another", { ends: new Date(this.tokenEnds).toISOString() });
  }

  /** end has a session of a room be over here, too. */
  #end(gate: Gate, id: unknown): void {
    const pass = typeof id === "string" ? fromBase64url(id) : undefined;
    if (pass?.length !== 16) return;
    gate.forget(String(id));
    this.#over(fromBytes(pass));
  }
}

function hasNews({ link }: Door): boolean {
  return link.gate.hasNews() || link.openings.some((o) => o.until !== undefined && !o.isRecorded);
}

/** noticeOf reads what the server says of a room; undefined: nothing. */
function noticeOf(said: Record<string, unknown>): Notice | undefined {
  const { gate } = said;
  const [perMinute, maxActive, nodes, length, share] = ["per_minute", "max_active", "nodes", "session_ms", "share"].map((name) => said[name]);
  if (gate !== "open" && gate !== "shut") return undefined;
  if (!isCount(perMinute) || !isCount(maxActive) || !isCount(nodes) || !isCount(length) || !isCount(share) || length === 0) return undefined;
  return { isOpen: gate === "open", perMinute, maxActive, nodes, length };
}

function isCount(v: unknown): v is number {
  return typeof v === "number" && Number.isSafeInteger(v) && v >= 0;
}
