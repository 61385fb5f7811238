// The connector: its state, and what it does for the requests that check.ts
// decides about. It works like package connector.

import { agentOf, opensPage } from "./answer.ts";
import { Batches, type WaitUntil } from "./batch.ts";
import { base64url, toBytes } from "./bytes.ts";
import { RequestCheck } from "./check.ts";
import { Holders } from "./holders.ts";
import { serveOwn } from "./own.ts";
import { refuse, retryLater } from "./pages.ts";
import { type Ed25519, verify, webEd25519 } from "./pass.ts";
import { ageOf, Proofs } from "./proof.ts";
import { type ReportedRules, Reporter } from "./report.ts";
import type { ReturnSigning } from "./return.ts";
import { type FailOpen, Refusal, RoomClient, type Runtime } from "./room.ts";
import type { Site } from "./rules.ts";
import { isUnqueued, networkOf, noKey, prefixOf, type Session, Signer, tagOf } from "./session.ts";
import { type Found, Source, type SourceOptions, serverOf } from "./source.ts";
import { urlOf } from "./target.ts";

export const defaultProbe = 10_000; // milliseconds between probes of a room
const probeInterval = 1000; // milliseconds between probes of a room that is down
const rulesInterval = 10_000; // milliseconds between polls of the rules
const touchInterval = 60_000; // milliseconds between touches of a session
const logInterval = 60_000; // milliseconds between log lines of one kind about requests
const maxKnown = 10_000; // sessions with a remembered touch
const maxOver = 50_000; // remembered ended sessions

/** Options configures a connector. Required: key, site, and rules or rulesURL. */
export interface Options extends SourceOptions {
  /** rules is a document (connector/rules/FORMAT.md). With rulesURL it applies until that has responded. */
  rules?: string | undefined;
  /** rulesURL is polled every 10 s: https, or http on this machine. */
  rulesURL?: string | undefined;
  /** siteKey verifies the rules, whose URL is then one such as https://SERVER/v1/sites/NAME/rules. */
  siteKey?: string | undefined;
  /**
   * token is a token of the organization with the scope connect, for signed rules
   * and reports. Rooms in mode safety-net need it.
   */
  token?: string | undefined;
  /** server is for the token and reports, such as https://queue.example.com; default: the server of rulesURL. */
  server?: string | undefined;
  /** key signs the cookies: 32 random bytes or more, the same in all connectors of a site. */
  key: Uint8Array<ArrayBuffer>;
  /** site sends a request to the site. */
  site: (request: Request) => Promise<Response>;
  /** ask sends a request to a room or the server, or for rules. It follows no redirects. */
  ask?: (request: Request) => Promise<Response>;
  /** page is the HTML page for rooms whose failure is "page". */
  page?: string | undefined;
  /** ed25519 verifies signatures on platforms without Ed25519. */
  ed25519?: Ed25519;
  /** probe is the interval between probes of a room, in milliseconds. */
  probe?: number;
  /** now returns milliseconds since 1970. */
  now?: () => number;
  log?: Runtime["log"];
}

/** Context is what the platform knows about a request. */
export interface Context {
  /** client is the visitor's address; not from a header that visitors can set. */
  client: string;
  /** waitUntil keeps the isolate running until a promise is settled. */
  waitUntil?: (promise: Promise<unknown>) => void;
  /**
   * endsWithRequest: the platform stops the instance when the response is sent, or
   * delays the response for pending work. Updates are then sent immediately.
   */
  endsWithRequest?: boolean;
  /** isReused: endsWithRequest is set, but the instance serves later requests. */
  isReused?: boolean;
}

const counted = [
  "bypassed",
  "observed",
  "passed",
  "started",
  "queued",
  "turned",
  "crowded",
  "blocked",
  "unavailable",
  "failed_open",
  "redeemed",
  "refused",
  "touches",
  "released",
  "dropped",
  "copied",
  "faults",
  "reports",
] as const;

/** RoomStats is the state and the counts of a room. */
export interface RoomStats {
  downSince?: number | undefined;
  failOpen: FailOpen[];
  gate?: "open" | "shut"; // in the latest reply
  free: number; // active unqueued sessions known here
  observed: number; // requests that would have needed a session if the room were on
}

/** Stats are the counts of this isolate since its start. */
export type Stats = Record<(typeof counted)[number], number> & {
  rulesVersion: string;
  tokenEnds?: number | undefined;
  rooms: Record<string, RoomStats>;
};

/** Visit is a request on its way to the site. */
export interface Visit {
  request: Request;
  rm?: RoomClient;
  session?: Session; // undefined: no session
  isNew?: boolean; // the response starts the session
}

/** State is the rules in force, with their rooms. */
export interface State {
  site: Site;
  version: bigint; // 0: rules are not signed
  rooms: Map<string, RoomClient>; // by name
  byURL: Map<string, RoomClient>;
}

/** begunHeader carries a new unqueued session to finish, if that runs separately. */
export const begunHeader = "X-Proofline-Begun";

const consoleLog: Runtime["log"] = (level, text, detail) =>
  console[level](`proofline: ${text}`, JSON.stringify(detail));

export class Connector {
  readonly #options: Options;
  readonly #runtime: Runtime;
  readonly #signer: Signer;
  readonly #source: Source;
  readonly #batches: Batches;
  readonly #reporter: Reporter | undefined; // undefined: no token
  readonly #proofs = new Proofs();
  readonly #holders = new Holders();
  readonly #ended = new Set<string>(); // ended sessions, by pass
  readonly #touched = new Map<string, number>(); // times of touches, by pass
  readonly counts = Object.fromEntries(counted.map((name) => [name, 0])) as Record<(typeof counted)[number], number>;
  #state: State | undefined;
  #pulled = -Infinity;
  readonly #warnedAt = new Map<string, number>(); // times of warnings, by text

  constructor(options: Options) {
    if (options.key.length < 32) throw new Error("the cookie key must have at least 32 random bytes");
    this.#options = options;
    this.#runtime = {
      ask: options.ask ?? ((request) => fetch(request)),
      now: options.now ?? Date.now,
      log: options.log ?? consoleLog,
    };
    this.#signer = new Signer(options.key);
    this.#source = new Source(options, this.#runtime, options.ed25519 ?? webEd25519);
    this.#batches = new Batches(this.#runtime, (kind, session, said) => {
      if (said !== "ok") this.#end(session.pass);
      else if (kind === "touch") this.counts.touches++;
    });
    const [server, { token }] = [serverOf(options), options];
    if (token !== undefined && server === undefined) throw new Error("give the server for the token");
    if (token !== undefined && server !== undefined)
      this.#reporter = new Reporter({ server, token }, this.#runtime, this.counts, (pass) => this.#end(pass));
    if (this.#source.bound) this.#check(this.#source.bound);
  }

  /** fetch answers a request, or passes it on to the site. */
  async fetch(request: Request, context: Context): Promise<Response> {
    const outcome = await this.guard(request, context);
    if (outcome instanceof Response) return outcome;
    return this.finish(outcome, await this.#options.site(outcome.request), context);
  }

  /** stats returns the current counts. */
  stats(): Stats {
    const rooms: Stats["rooms"] = {};
    for (const [name, { roomState }] of this.#state?.rooms ?? []) {
      const { reply } = roomState.gate;
      const gate = reply ? { gate: reply.isOpen ? ("open" as const) : ("shut" as const) } : {};
      rooms[name] = {
        downSince: roomState.since,
        failOpen: roomState.failOpen.map((o) => ({ ...o })),
        free: roomState.gate.count(this.now()),
        observed: roomState.observed.all,
        ...gate,
      };
    }
    return {
      ...this.counts,
      rulesVersion: String(this.#state?.version ?? 0),
      tokenEnds: this.#reporter?.tokenEnds,
      rooms,
    };
  }

  /** guard returns the request for the site, or a response. An exception counts as a failure of the room. */
  async guard(request: Request, context: Context): Promise<Visit | Response> {
    if (!urlOf(request.url)) return this.malformed(request); // some platforms do not check addresses
    const own = serveOwn(request);
    if (own) return own;
    const check = new RequestCheck(this, request, context);
    try {
      const state = await this.#current(context);
      if (!state) return await check.early();
      this.#tick(state, context);
      const outcome = await check.run(state);
      this.#tick(state, context); // report what the request has changed
      return outcome;
    } catch (error) {
      this.#failed(error);
      return check.rm ? check.fail(check.rm) : this.retryPage(request);
    }
  }

  /** resume returns the visit of a request that guard has admitted, if finish runs separately. */
  async resume(request: Request, context: Context): Promise<Visit> {
    try {
      const state = await this.#current(context);
      return state ? await new RequestCheck(this, request, context).resume(state) : { request };
    } catch (error) {
      this.#failed(error);
      return { request };
    }
  }

  #failed(error: unknown): undefined {
    this.counts.faults++;
    this.#runtime.log("error", "the connector panicked", { error: String(error) });
  }

  /** malformed refuses a request whose address is malformed. */
  async malformed(request: Request): Promise<Response> {
    this.counts.blocked++;
    return refuse(request, 400, { error: "malformed" });
  }

  async retryPage(request: Request): Promise<Response> {
    this.counts.unavailable++;
    return retryLater(request);
  }

  /** finish obeys the site's command, or keeps the session. After an exception the visitor gets the site's response. */
  async finish(visit: Visit, response: Response, context: Context): Promise<Response> {
    if (response.status === 101) return socketOf(response);
    const cookie = await this.#after(visit, response, context).catch((error: unknown) => this.#failed(error));
    if (!cookie && !response.headers.has("Proofline-Command")) return response;
    const out = new Response(response.body, response);
    out.headers.delete("Proofline-Command");
    if (cookie) out.headers.append("Set-Cookie", cookie);
    return out;
  }

  /** after returns the cookie for a response; undefined: none. */
  async #after({ rm, session, isNew }: Visit, response: Response, context: Context): Promise<string | undefined> {
    if (!rm || !session) return undefined;
    const commands = (response.headers.get("Proofline-Command") ?? "").split(",").map((c) => c.trim());
    // Others must not get the cookie.
    const isShared = /public|s-maxage/i.test(response.headers.get("Cache-Control") ?? "");
    const change = commands.includes("release") ? this.#release : isNew ? this.#begin : this.#slide;
    const cookie = await change.call(this, rm, session, isShared, context);
    if (this.#state) this.#tick(this.#state, context);
    return cookie;
  }

  /** release ends a session here at once, and queues its release at the room. */
  async #release(rm: RoomClient, session: Session, _: boolean, context: Context): Promise<string> {
    this.#end(session.pass);
    this.counts.released++;
    if (isUnqueued(session)) rm.roomState.gate.end(idOf(session));
    else this.#tell(rm, session, "release", context);
    return expired(rm);
  }

  /** leave ends all sessions of a request, and returns the cookies that remove them. */
  async leave(request: Request, { rooms }: State, context: Context): Promise<string[]> {
    const cookies: string[] = [];
    for (const rm of rooms.values()) {
      const network = rm.room.bind === "network" ? await rm.bindOf(context.client, "") : undefined;
      // The site's own program shows the cookie alone.
      for (const session of await this.sessions(request, rm))
        if (network === undefined || session.bind === network) await this.#release(rm, session, false, context);
      if (valuesOf(request, rm.cookie).length > 0) cookies.push(expired(rm));
    }
    return cookies;
  }

  /** end refuses a session from now on. */
  #end(pass: string): void {
    this.#ended.delete(pass);
    this.#ended.add(pass);
    forget(this.#ended, maxOver);
  }

  /** begin sets the cookie of a new session. If caches may share the response, the session ends instead. */
  async #begin(rm: RoomClient, session: Session, isShared: boolean): Promise<string | undefined> {
    if (!isShared) return this.cookieOf(rm, session);
    rm.roomState.gate.end(idOf(session));
    return undefined;
  }

  /** slide extends a session, if it is due. */
  async #slide(rm: RoomClient, session: Session, isShared: boolean, context: Context): Promise<string | undefined> {
    const now = this.#runtime.now();
    const again = Math.min(touchInterval, session.length / 3);
    if (isShared || now - session.issued < again || now - (this.#touched.get(session.pass) ?? -Infinity) < again)
      return undefined;
    const slid = { ...session, issued: now, ends: Math.min(now + session.length, session.most) };
    remember(this.#touched, session.pass, now);
    if (isUnqueued(session)) rm.roomState.gate.stay(idOf(session), slid.ends, now);
    else if (!this.#tell(rm, session, "touch", context)) return undefined;
    return this.cookieOf(rm, slid);
  }

  /** tell queues a touch or release. False: too much is queued. */
  #tell(rm: RoomClient, session: Session, kind: "touch" | "release", context: Context): boolean {
    const isTaken = this.#batches.add(
      rm,
      kind,
      session,
      this.#waitUntil(context),
      context.endsWithRequest ? 0 : undefined,
    );
    if (!isTaken) this.counts.dropped++;
    return isTaken;
  }

  /** tick reports, if a report is due. */
  #tick(state: State, context: Context): void {
    this.#reporter?.tick(this.#reported(state), this.#waitUntil(context), context.endsWithRequest ?? false);
  }

  #reported({ version, rooms }: State): ReportedRules {
    return { name: this.#source.name, version, rooms: [...rooms.values()] };
  }

  #waitUntil(context: Context): WaitUntil {
    return (work) => context.waitUntil?.(work);
  }

  /** cookieOf returns the Set-Cookie header of a session, without Max-Age: the signed value has its end. */
  async cookieOf(rm: RoomClient, session: Session): Promise<string> {
    return `${rm.cookie}=${await this.#signer.format(session)}; Path=/; HttpOnly; Secure; SameSite=Lax`;
  }

  /** find finds the request's active session for a room, if the client may use it. */
  async find(request: Request, rm: RoomClient, client: string): Promise<Session | undefined> {
    for (const session of await this.sessions(request, rm))
      if (await this.#mayUse(request, rm, session, client)) return session;
    return undefined;
  }

  /** sessions returns the request's active sessions for a room. */
  async sessions(request: Request, rm: RoomClient): Promise<Session[]> {
    const all = await Promise.all(valuesOf(request, rm.cookie).map((text) => this.#signer.parse(text)));
    return all.filter((session) => session !== undefined).filter((session) => this.#isActive(session, rm));
  }

  /** isActive reports whether a session belongs to the room and has not ended. */
  #isActive(s: Session, rm: RoomClient): boolean {
    const now = this.#runtime.now();
    if (isUnqueued(s) && rm.room.mode !== "safety-net") return false;
    return s.room === rm.tag && now < s.ends && now < s.most && !this.#ended.has(s.pass);
  }

  /**
   * mayUse reports whether the client may use a session: it proves possession of
   * the session's key, or matches its network or browser family, and not too many
   * clients share the session.
   */
  async #mayUse(request: Request, rm: RoomClient, session: Session, client: string): Promise<boolean> {
    const isBrowser = rm.room.bind === "browser";
    const bind = await rm.bindOf(client, agentOf(request));
    if (isBrowser && session.key !== noKey) {
      if ((await this.prove(request, rm, session, ageOf(session, opensPage(request)))) === undefined) return false;
    } else if (bind !== session.bind) return false;
    if (!isBrowser || this.#holders.add(session.pass, (await networkOf(client)) + bind, this.now())) return true;
    this.counts.copied++;
    return false;
  }

  /** prove returns the thumbprint of the key of a valid proof of at most the given age; undefined: none. */
  prove(request: Request, rm: RoomClient, session: Session, age: number): Promise<string | undefined> {
    return this.#proofs.keyOf(request, valuesOf(request, rm.proof), rm.room.url, session, age, this.now());
  }

  /** beginning returns the value of begunHeader. */
  async beginning({ session, isNew }: Visit): Promise<string | undefined> {
    return session && isNew ? this.#signer.format(session) : undefined;
  }

  /** begun parses begunHeader. */
  async begun(request: Request, rm: RoomClient, client: string): Promise<Session | undefined> {
    const session = await this.#signer.parse(request.headers.get(begunHeader) ?? "");
    return session && this.#isActive(session, rm) && (await this.#mayUse(request, rm, session, client))
      ? session
      : undefined;
  }

  /** pass begins an unqueued session, if the gate allows it. */
  async pass(rm: RoomClient, state: State, client: string, agent: string): Promise<Session | undefined> {
    const { gate } = rm.roomState;
    await this.#reporter?.ready(rm, this.#reported(state));
    const [bind, network] = [await rm.bindOf(client, agent), prefixOf(client)];
    const passes = gate.passes(this.now(), network); // no await from here to begin
    if (passes === "turned" || passes === "crowded") this.counts[passes]++;
    // The network may be a proxy in front of this platform.
    if (passes === "crowded")
      this.warn("visitors of one network must wait: it started too many sessions within a minute", {
        room: rm.name,
        client,
      });
    if (passes !== "begins" || !gate.reply) return undefined;
    const session = rm.free(gate.reply.length, bind);
    gate.begin(idOf(session), session.ends, this.now(), network);
    this.counts.started++;
    return session;
  }

  /** warn logs a warning about requests, once a minute. */
  warn(text: string, detail: Record<string, unknown>): void {
    if (this.now() - (this.#warnedAt.get(text) ?? -Infinity) < logInterval) return;
    this.#warnedAt.set(text, this.now());
    this.#runtime.log("warn", text, detail);
  }

  /**
   * returns says how return URLs are signed. An isolate's first visitors wait for it, unless the isolate ends with
   * them.
   */
  async returns(
    rm: RoomClient,
    state: State,
    { endsWithRequest, isReused }: Context,
  ): Promise<ReturnSigning | undefined> {
    if (!rm.roomState.returns && (!endsWithRequest || isReused)) await this.#reporter?.ready(rm, this.#reported(state));
    return rm.roomState.returns;
  }

  /** replace ends an unqueued session whose visitor now has a pass. */
  replace(rm: RoomClient, session: Session): void {
    this.#end(session.pass);
    rm.roomState.gate.end(idOf(session));
  }

  /** redeem verifies and redeems a pass. It throws a Refusal. */
  async redeem(rm: RoomClient, token: string, client: string, agent: string): Promise<Session> {
    const pass = await verify(
      token,
      rm.room,
      this.#runtime.now(),
      (id) => rm.key(id),
      this.#options.ed25519 ?? webEd25519,
    );
    const session =
      pass && (await rm.redeem(pass, client, agent, await this.#signer.clientOf(rm.room.url, client, agent)));
    if (!session || !this.#isActive(session, rm)) throw new Refusal("pass", "no valid pass");
    return session;
  }

  /**
   * probe fetches a room's keys, if a probe is due, to learn whether the room is up.
   * Only an isolate's first visitors wait for it.
   */
  async probe(rm: RoomClient, context: Context): Promise<void> {
    const { roomState } = rm;
    if (roomState.busyUntil > this.#runtime.now()) return roomState.isKnown ? undefined : rm.waitForKeys();
    const again = roomState.since === undefined ? (this.#options.probe ?? defaultProbe) : probeInterval;
    if (this.#runtime.now() - roomState.probed < again) return undefined;
    const asked = rm.fetchKeys().catch((error: unknown) => {
      if (error instanceof Refusal && error.why !== "unreachable")
        this.#runtime.log("warn", "cannot fetch the room's keys", { room: rm.name, error: error.message });
    });
    if (!roomState.isKnown) await asked;
    else context.waitUntil?.(asked);
  }

  now(): number {
    return this.#runtime.now();
  }

  get page(): string {
    return this.#options.page ?? "";
  }

  /** current returns the rules in force; undefined: none yet, and then every request polls. */
  async #current(context: Context): Promise<State | undefined> {
    const { rulesURL } = this.#options;
    const first = this.#state ? undefined : await this.#source.first();
    if (rulesURL !== undefined && (!this.#state || this.#runtime.now() - this.#pulled >= rulesInterval)) {
      this.#pulled = this.#runtime.now();
      const pulled = this.#pull(rulesURL, context).catch((error: unknown) => this.#unused(error));
      if (this.#state) context.waitUntil?.(pulled);
      else await pulled;
    }
    if (!this.#state && first) await this.#use(first).catch((error: unknown) => this.#unused(error));
    return this.#state;
  }

  #unused(error: unknown): undefined {
    this.#runtime.log("error", "new rules are invalid: keeping the current ones", { error: String(error) });
  }

  async #pull(url: string, context: Context): Promise<void> {
    const found = await this.#source.pull(url);
    if (!found) return;
    await this.#use(found);
    this.#waitUntil(context)(this.#source.save());
    this.#runtime.log("info", "new rules", {
      rules: found.site.list.filter(({ name }) => !name.startsWith("default:")).length,
      rooms: found.site.rooms.size,
      version: String(found.version),
    });
  }

  /** check refuses rules that these options do not support. */
  #check(site: Site): void {
    for (const [name, room] of site.rooms) {
      if (room.failure === "page" && !this.#options.page)
        throw new Error(`room ${name}: a room's failure mode is "page": give the page`);
      if (room.mode === "safety-net" && !this.#reporter)
        throw new Error(`room ${name}: the mode safety-net needs a server and a token, for reports`);
    }
  }

  /** use puts rules into force, unless newer ones are. Rooms that stay keep their state. */
  async #use({ site, version }: Found): Promise<void> {
    this.#check(site);
    const rooms = await Promise.all(
      [...site.rooms].map(async ([name, room]) => ({ name, room, tag: await tagOf(room.url, room.origin) })),
    );
    if (this.#state && this.#state.version > version) return;
    const next: State = { site, version, rooms: new Map(), byURL: new Map() };
    for (const { name, room, tag } of rooms) {
      const rm = RoomClient.make(
        name,
        room,
        tag,
        next.byURL.get(room.url) ?? this.#state?.rooms.get(name),
        this.#runtime,
      );
      next.rooms.set(name, rm);
      next.byURL.set(room.url, rm);
    }
    this.#state = next;
  }
}

/** socketOf passes an open socket on, or responds with 501 if the platform lost it. */
async function socketOf(response: Response & { webSocket?: unknown }): Promise<Response> {
  if (response.webSocket) return response;
  await response.body?.cancel();
  return new Response("WebSockets are not supported here\n", {
    status: 501,
    headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" },
  });
}

/** remember adds to a map, and drops the oldest entries. */
function remember(map: Map<string, number>, name: string, value: number): void {
  map.delete(name);
  map.set(name, value);
  forget(map, maxKnown);
}

/** forget drops the oldest entries beyond a size. */
function forget(all: Map<string, unknown> | Set<string>, most: number): void {
  for (const oldest of all.keys()) {
    if (all.size <= most) return;
    all.delete(oldest);
  }
}

/** valuesOf returns the values of a request's cookies with a name. */
function valuesOf(request: Request, cookie: string): string[] {
  const parts = (request.headers.get("Cookie") ?? "").split(";").map((part) => part.trim());
  return parts.filter((part) => part.startsWith(`${cookie}=`)).map((part) => part.slice(cookie.length + 1));
}

/** expired returns the Set-Cookie header that removes a session cookie. */
function expired(rm: RoomClient): string {
  return `${rm.cookie}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax`;
}

/** idOf returns the id of an unqueued session in reports. */
function idOf({ pass }: Session): string {
  return base64url(toBytes(pass));
}
