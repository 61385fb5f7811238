// Reports to the server: counts, unqueued sessions and fail-open intervals of this
// isolate. See "Reports" of connector/rules/FORMAT.md.
import { listOf, readJSON, type WaitUntil } from "./batch.ts";
import { base64url, fromBase64url, fromBytes, toBytes } from "./bytes.ts";
import type { Gate, GateNews, GateReply } from "./gate.ts";
import { withObserved } from "./observed.ts";
import { read } from "./read.ts";
import { returnsOf } from "./return.ts";
import { callTimeout, newID, outgoing, type RoomClient, type Runtime, waitWhile } from "./room.ts";

const gateInterval = 1000; // milliseconds between reports while a room is in mode safety-net
const idleInterval = 10_000; // milliseconds between reports otherwise
const maxLate = 5000; // milliseconds after which delayed work counts as stopped by the platform
const maxIDs = 30_000; // in a report, to keep it below 1 MiB
const maxFailOpen = 20; // fail-open intervals of each room
const maxAnswer = 1 << 20; // bytes of a reply
const maxRooms = 100; // in a report
const maxOver = 2000; // ended sessions of each room in a reply
const day = 86_400_000;
const tokenSoon = 14 * day; // warn this long before the token's expiry
const lastTime = 8.64e15; // largest time of a Date

declare const buildVersion: string; // set by build.mjs

/** ReportTarget is the server, and the token for it. */
export interface ReportTarget {
  server: string; // such as https://queue.example.com
  token: string;
}

/** ReportedRules is the rules in force, as reported. */
export interface ReportedRules {
  name: string; // of the site; empty: rules are not signed
  version: bigint;
  rooms: RoomClient[];
}

/** Reporter reports to the server when requests come, at limited intervals. */
export class Reporter {
  readonly #to: ReportTarget;
  readonly #runtime: Runtime;
  readonly #counts: Record<string, number>;
  readonly #ended: (pass: string) => void;
  // Rooms of the rules, and former ones with something to report, by URL.
  readonly #known = new Map<string, RoomClient>();
  #node = ""; // created later: some platforms have no random bytes before the first request
  #made = -Infinity; // time of the latest report
  #busyUntil = 0;
  #nextUntil = 0; // until then, a waiting request makes the next report, or was stopped
  #turn = 0;
  readonly #warned = new Map<string, string>(); // last complaint about the replies, by room URL
  #refused = ""; // error of the latest report; empty: it was accepted
  tokenEnds: number | undefined; // undefined: never, or unknown
  #tokenWarned = -Infinity; // time of the last warning about the token

  /** over is called with sessions that ended elsewhere. */
  constructor(to: ReportTarget, runtime: Runtime, counts: Record<string, number>, over: (pass: string) => void) {
    [this.#to, this.#runtime, this.#counts, this.#ended] = [to, runtime, counts, over];
  }

  /**
   * tick reports if a report is due, or schedules one if there is news, because no
   * other request may come. If the instance ends with the request, it reports only
   * news, and at once.
   */
  tick(reported: ReportedRules, waitUntil: WaitUntil, endsWithRequest: boolean): void {
    const now = this.#runtime.now();
    const again = reported.rooms.some(({ room }) => room.mode === "safety-net") ? gateInterval : idleInterval;
    if (endsWithRequest) {
      if (reported.rooms.some(hasNews)) waitUntil(this.#reportNext(reported, 0));
    } else if (now - this.#made >= again && this.#busyUntil <= now) waitUntil(this.#report(reported));
    else if (this.#nextUntil <= now && reported.rooms.some(hasNews)) {
      this.#nextUntil = now + again + maxLate;
      waitUntil(this.#reportNext(reported, again));
    }
  }

  /** reportNext reports the news that is left after a delay, and after the current report. */
  async #reportNext(reported: ReportedRules, after: number): Promise<void> {
    if (after > 0) await new Promise((done) => setTimeout(done, after));
    this.#nextUntil = 0;
    await waitWhile(() => this.#busyUntil > this.#runtime.now());
    if (reported.rooms.some(hasNews)) await this.#report(reported);
  }

  /** ready returns when the room's gate is known, or cannot be. */
  async ready(rm: RoomClient, reported: ReportedRules): Promise<void> {
    const { gate } = rm.roomState;
    if (gate.isKnown(this.#runtime.now())) return;
    if (this.#busyUntil > this.#runtime.now()) await waitWhile(() => this.#busyUntil > this.#runtime.now());
    if (!gate.isKnown(this.#runtime.now())) await this.#report(reported);
  }

  async #report(reported: ReportedRules): Promise<void> {
    const turn = ++this.#turn;
    [this.#made, this.#busyUntil] = [this.#runtime.now(), this.#runtime.now() + callTimeout];
    const sent = this.#take(reported);
    try {
      const answer = await this.#ask(reported, sent);
      if (turn === this.#turn) this.#apply(answer, sent);
      this.#storeTokenEnd(answer.token_ends);
      this.#counts.reports = (this.#counts.reports ?? 0) + 1;
      this.#refused = "";
    } catch (error) {
      if (this.#refused !== String(error))
        this.#runtime.log("error", "cannot report to the server", { error: String(error) });
      this.#refused = String(error);
    } finally {
      if (turn === this.#turn) this.#busyUntil = 0;
      for (const { rm } of sent) rm.roomState.gate.tried = this.#runtime.now();
    }
  }

  /** take collects the news of each room for a report. */
  #take(reported: ReportedRules): { rm: RoomClient; news: GateNews; body: object }[] {
    for (const [url, rm] of this.#known) if (!hasNews(rm)) this.#known.delete(url);
    const inNet = (rm: RoomClient): boolean => rm.room.mode === "safety-net";
    for (const rm of [...reported.rooms.filter((d) => !inNet(d)), ...reported.rooms.filter(inNet)])
      this.#known.set(rm.room.url, rm);
    return [...this.#known.values()].slice(-maxRooms).map((rm) => {
      const news = rm.roomState.gate.take(Math.floor(maxIDs / this.#known.size));
      const over = rm.roomState.failOpen.filter((o) => o.until !== undefined && !o.isRecorded).slice(0, maxFailOpen);
      const failOpen = over.map(({ id, from, until = 0, requests }) => ({
        id,
        from,
        until: Math.max(until, from + 1),
        requests,
      }));
      const all = Object.entries({ ...news, fail_open: failOpen }).filter(([, value]) =>
        Array.isArray(value) ? value.length > 0 : value > 0,
      );
      return { rm, news, body: { room: rm.room.url, mode: rm.room.mode, ...Object.fromEntries(all) } };
    });
  }

  async #ask({ name, version, rooms }: ReportedRules, sent: { body: object }[]): Promise<Record<string, unknown>> {
    this.#node ||= base64url(toBytes(newID()));
    const said = {
      node: this.#node,
      site: name,
      kind: "edge",
      version: buildVersion,
      counts: withObserved(this.#counts, rooms, this.#runtime.now()),
      rooms: sent.map(({ body }) => body),
    };
    // JSON.stringify does not support bigint.
    const body = `{"rules_version":${version},` + JSON.stringify(said).slice(1);
    const headers = { Authorization: `Bearer ${this.#to.token}`, "Content-Type": "application/json" };
    const answer = await this.#runtime.ask(
      outgoing(`${this.#to.server}/v1/connectors/report`, { method: "POST", headers, body }),
    );
    const text = await read(answer, maxAnswer);
    if (answer.status === 401 || answer.status === 403)
      throw new Error(`status ${answer.status}: the token must belong to the organization and have the scope connect`);
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    return readJSON(text);
  }

  /** apply applies the reply for each room. */
  #apply(answer: Record<string, unknown>, sent: { rm: RoomClient; news: GateNews }[]): void {
    for (const each of listOf(answer.rooms)) {
      const said = (each ?? {}) as Record<string, unknown>;
      const found = sent.find(({ rm }) => rm.room.url === said.room);
      const reply = gateReplyOf(said);
      if (!found) continue;
      const { roomState } = found.rm;
      const { gate, failOpen } = roomState;
      roomState.returns = returnsOf(said) ?? roomState.returns;
      if (reply) gate.update(reply, Number(said.share), found.news, this.#runtime.now());
      this.#warnOnce(found.rm, reply ? "" : String(said.error ?? "no gate"));
      for (const id of listOf(said.over).slice(0, maxOver)) this.#end(gate, id);
      for (const interval of failOpen) if (listOf(said.recorded).includes(interval.id)) interval.isRecorded = true;
    }
  }

  /** warnOnce logs a complaint about the replies for a room, unless it is the same as the last one. */
  #warnOnce({ name, room }: RoomClient, error: string): void {
    if (error && error !== this.#warned.get(room.url))
      this.#runtime.log("warn", "the server's reply has no valid gate for this room", { room: name, error });
    this.#warned.set(room.url, error);
  }

  /** storeTokenEnd stores the token's expiry, and warns once a day before it. */
  #storeTokenEnd(ends: unknown): void {
    const now = this.#runtime.now();
    this.tokenEnds = isCount(ends) && ends > 0 && ends <= lastTime ? ends : undefined;
    if (this.tokenEnds === undefined || this.tokenEnds - now > tokenSoon || now - this.#tokenWarned < day) return;
    this.#tokenWarned = now;
    this.#runtime.log("warn", "server token expires soon: replace it", {
      ends: new Date(this.tokenEnds).toISOString(),
    });
  }

  /** end ends a session of a room here, too. */
  #end(gate: Gate, id: unknown): void {
    const pass = typeof id === "string" ? fromBase64url(id) : undefined;
    if (pass?.length !== 16) return;
    gate.forget(String(id));
    this.#ended(fromBytes(pass));
  }
}

function hasNews({ roomState }: RoomClient): boolean {
  return roomState.gate.hasNews() || roomState.failOpen.some((o) => o.until !== undefined && !o.isRecorded);
}

/** gateReplyOf parses the gate in a reply; undefined: malformed. */
function gateReplyOf(said: Record<string, unknown>): GateReply | undefined {
  const { gate } = said;
  const [perMinute, maxActive, nodes, length, share] = ["per_minute", "max_active", "nodes", "session_ms", "share"].map(
    (name) => said[name],
  );
  if (gate !== "open" && gate !== "shut") return undefined;
  if (
    !isCount(perMinute) ||
    !isCount(maxActive) ||
    !isCount(nodes) ||
    !isCount(length) ||
    !isCount(share) ||
    length === 0
  )
    return undefined;
  return { isOpen: gate === "open", perMinute, maxActive, nodes, length };
}

function isCount(v: unknown): v is number {
  return typeof v === "number" && Number.isSafeInteger(v) && v >= 0;
}
