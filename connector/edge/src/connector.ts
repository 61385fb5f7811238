// The connector: what it keeps, and what it does for the requests that
// inquiry.ts decides about, as package connector does it.
import { Batches, type Under } from "./batch.ts";
import { base64url, toBytes } from "./bytes.ts";
import { Door, Refusal, type Opening, type World } from "./door.ts";
import { hold, tell } from "./hold.ts";
import { agentOf, opensPage } from "./answer.ts";
import { Holders } from "./holders.ts";
import { Inquiry } from "./inquiry.ts";
import { serveOwn } from "./own.ts";
import { verify, webEd25519, type Ed25519 } from "./pass.ts";
import { ageOf, Proofs } from "./proof.ts";
import { Reporter, type Ground } from "./report.ts";
import type { Returns } from "./return.ts";
import type { Site } from "./rules.ts";
import { isFree, networkOf, noKey, prefixOf, Signer, tagOf, type Session } from "./session.ts";
import { serverOf, Source, type Found, type SourceOptions } from "./source.ts";
import { urlOf } from "./target.ts";

export const defaultProbe = 10_000; // milliseconds between questions whether a room is there
const probeAgain = 1000; // while it is not
const rulesAgain = 10_000; // between questions for new rules
const touchAgain = 60_000; // between touches of a session
const tellAgain = 60_000; // between lines of the log about requests of one kind
const maxKnown = 10_000; // sessions of which it is remembered when they were touched
const maxOver = 50_000; // sessions that are remembered to be over

/** Options is what connector needs. Key, site, and rules or rulesURL must be given. */
export interface Options extends SourceOptions {
  /** rules is a document (connector/rules/FORMAT.md). With rulesURL it counts until that has answered. */
  rules?: string | undefined;
  /** rulesURL is asked every 10 s: https, or http on this machine. */
  rulesURL?: string | undefined;
  /** siteKey is what rules must be signed by. Their URL is then such as https://SERVER/v1/sites/NAME/rules. */
  siteKey?: string | undefined;
  /** token is one of the organization with the scope connect, for signed rules and reports. Rooms in mode safety-net need it. */
  token?: string | undefined;
  /** server gets the token and the reports, such as https://queue.example.com; unless it is said, that of rulesURL. */
  server?: string | undefined;
  /** key signs the cookies: 32 random bytes or more, the same in all connectors of a site. */
  key: Uint8Array<ArrayBuffer>;
  /** site sends a request to the site. */
  site: (request: Request) => Promise<Response>;
  /** ask sends a request to a room or the server, or for rules. It follows no redirects. */
  ask?: (request: Request) => Promise<Response>;
  /** page is what visitors see where a room's failure is "page": HTML. */
  page?: string | undefined;
  /** ed25519 checks signatures where the platform cannot. */
  ed25519?: Ed25519;
  /** probe is how often rooms are asked whether they are there, in milliseconds. */
  probe?: number;
  /** now returns milliseconds since 1970. */
  now?: () => number;
  log?: World["log"];
}

/** Context is what the platform knows of a request. */
export interface Context {
  /** client is the visitor's address, not from a header that visitors can set. */
  client: string;
  /** waitUntil keeps the isolate running until a promise is settled. */
  waitUntil?: (promise: Promise<unknown>) => void;
  /** isShort is said where instances end with the request, or answers wait for what is under way: what there is to tell is told at once, and else nothing. */
  isShort?: boolean;
  /** isKept is said where that is so, and yet the instance goes on with later requests. */
  isKept?: boolean;
}

const counted = ["bypassed", "observed", "passed", "started", "queued", "turned", "crowded", "blocked", "held", "opened", "redeemed", "refused", "touches", "released", "dropped", "copied", "faults", "reports"] as const;

/** RoomStats is what is known of a room. */
export interface RoomStats {
  downSince?: number | undefined;
  openings: Opening[];
  gate?: "open" | "shut"; // as last heard
  free: number; // free sessions that go on, as far as they were here
  observed: number; // requests that would have waited, if the room were not off
}

/** Stats counts what this isolate did since it began. */
export type Stats = Record<(typeof counted)[number], number> & { serial: string; tokenEnds?: number | undefined; rooms: Record<string, RoomStats> };

/** Visit is a request that is under way to the site. */
export interface Visit {
  request: Request;
  door?: Door;
  session?: Session; // none: without a pass
  isNew?: boolean; // the session begins with the answer
}

/** State is what follows from the rules. */
export interface State {
  site: Site;
  serial: bigint; // of signed rules, else 0
  doors: Map<string, Door>; // by name
  byURL: Map<string, Door>;
}

/** begunHeader is how a free session that began reaches finish where that runs on its own. */
export const begunHeader = "X-Proofline-Begun";

const consoleLog: World["log"] = (level, text, detail) => console[level](`proofline: ${text}`, JSON.stringify(detail));

export class Connector {
  readonly #options: Options;
  readonly #world: World;
  readonly #signer: Signer;
  readonly #source: Source;
  readonly #batches: Batches;
  readonly #reporter: Reporter | undefined; // undefined: there is no token
  readonly #proofs = new Proofs();
  readonly #holders = new Holders();
  readonly #over = new Set<string>(); // sessions that are over, by pass
  readonly #touched = new Map<string, number>(); // when sessions were touched here, by pass
  readonly counts = Object.fromEntries(counted.map((name) => [name, 0])) as Record<(typeof counted)[number], number>;
  #state: State | undefined;
  #pulled = -Infinity;
  readonly #told = new Map<string, number>(); // when something was logged of requests, by its text

  constructor(options: Options) {
    if (options.key.length < 32) throw new Error("the key for cookies must have at least 32 random bytes");
    this.#options = options;
    this.#world = { ask: options.ask ?? ((request) => fetch(request)), now: options.now ?? Date.now, log: options.log ?? consoleLog };
    this.#signer = new Signer(options.key);
    this.#source = new Source(options, this.#world, options.ed25519 ?? webEd25519);
    this.#batches = new Batches(this.#world, (kind, session, said) => {
      if (said !== "ok") this.#end(session.pass);
      else if (kind === "touch") this.counts.touches++;
    });
    const [server, { token }] = [serverOf(options), options];
    if (token !== undefined && server === undefined) throw new Error("a token needs the server that it is for");
    if (token !== undefined && server !== undefined) this.#reporter = new Reporter({ server, token }, this.#world, this.counts, (pass) => this.#end(pass));
    if (this.#source.bound) this.#check(this.#source.bound);
  }

  /** fetch answers a request, or has the site answer it. */
  async fetch(request: Request, context: Context): Promise<Response> {
    const outcome = await this.guard(request, context);
    if (outcome instanceof Response) return outcome;
    return this.finish(outcome, await this.#options.site(outcome.request), context);
  }

  /** stats returns the counts. */
  stats(): Stats {
    const rooms: Stats["rooms"] = {};
    for (const [name, { link }] of this.#state?.doors ?? []) {
      const { told } = link.gate;
      const gate = told ? { gate: told.isOpen ? ("open" as const) : ("shut" as const) } : {};
      rooms[name] = { downSince: link.since, openings: link.openings.map((o) => ({ ...o })), free: link.gate.count(this.now()), observed: link.observed.all, ...gate };
    }
    return { ...this.counts, serial: String(this.#state?.serial ?? 0), tokenEnds: this.#reporter?.tokenEnds, rooms };
  }

  /** guard returns the request as the site gets it, or an answer instead. A fault of ours is a failure of the room. */
  async guard(request: Request, context: Context): Promise<Visit | Response> {
    if (!urlOf(request.url)) return this.malformed(request); // some platforms pass on whatever clients write
    const own = serveOwn(request);
    if (own) return own;
    const inquiry = new Inquiry(this, request, context);
    try {
      const state = await this.#current(context);
      if (!state) return await inquiry.early();
      this.#tick(state, context);
      const outcome = await inquiry.run(state);
      this.#tick(state, context); // for what has come of it
      return outcome;
    } catch (error) {
      this.#failed(error);
      return inquiry.door ? inquiry.fail(inquiry.door) : this.held(request);
    }
  }

  /** resume returns the visit of a request that guard has let through, where finish runs on its own. */
  async resume(request: Request, context: Context): Promise<Visit> {
    try {
      const state = await this.#current(context);
      return state ? await new Inquiry(this, request, context).resume(state) : { request };
    } catch (error) {
      this.#failed(error);
      return { request };
    }
  }

  #failed(error: unknown): undefined {
    this.counts.faults++;
    this.#world.log("error", "connector failed", { error: String(error) });
  }

  /** malformed answers a request whose address is none, and of which no more is known. */
  async malformed(request: Request): Promise<Response> {
    this.counts.blocked++;
    return tell(request, 400, { error: "malformed" });
  }

  async held(request: Request): Promise<Response> {
    this.counts.held++;
    return hold(request);
  }

  /** finish does what the site says, and keeps the session going. A fault of ours leaves the visitor the site's answer. */
  async finish(visit: Visit, response: Response, context: Context): Promise<Response> {
    if (response.status === 101) return socketOf(response);
    const cookie = await this.#after(visit, response, context).catch((error: unknown) => this.#failed(error));
    if (!cookie && !response.headers.has("Proofline-Command")) return response;
    const out = new Response(response.body, response);
    out.headers.delete("Proofline-Command");
    if (cookie) out.headers.append("Set-Cookie", cookie);
    return out;
  }

  /** after returns the cookie that goes with an answer, if any does. */
  async #after({ door, session, isNew }: Visit, response: Response, context: Context): Promise<string | undefined> {
    if (!door || !session) return undefined;
    const commands = (response.headers.get("Proofline-Command") ?? "").split(",").map((c) => c.trim());
    const isShared = /public|s-maxage/i.test(response.headers.get("Cache-Control") ?? ""); // others must not get the cookie
    const change = commands.includes("release") ? this.#release : isNew ? this.#begin : this.#slide;
    const cookie = await change.call(this, door, session, isShared, context);
    if (this.#state) this.#tick(this.#state, context);
    return cookie;
  }

  /** release ends a session here at once, and at the room as soon as it hears. */
  async #release(door: Door, session: Session, _: boolean, context: Context): Promise<string> {
    this.#end(session.pass);
    this.counts.released++;
    if (isFree(session)) door.link.gate.end(idOf(session));
    else this.#tell(door, session, "release", context);
    return expired(door);
  }

  /** leave ends all sessions of a request, and returns the cookies that take them away. */
  async leave(request: Request, { doors }: State, context: Context): Promise<string[]> {
    const cookies: string[] = [];
    for (const door of doors.values()) {
      const network = door.room.bind === "network" ? await door.bindOf(context.client, "") : undefined;
      for (const session of await this.sessions(request, door)) if (network === undefined || session.bind === network) await this.#release(door, session, false, context); // the site's own program shows the cookie alone
      if (valuesOf(request, door.cookie).length > 0) cookies.push(expired(door));
    }
    return cookies;
  }

  /** end has a session be over here. */
  #end(pass: string): void {
    this.#over.delete(pass);
    this.#over.add(pass);
    forget(this.#over, maxOver);
  }

  /** begin has a free session begin, or end at once where others would get it. */
  async #begin(door: Door, session: Session, isShared: boolean): Promise<string | undefined> {
    if (!isShared) return this.cookieOf(door, session);
    door.link.gate.end(idOf(session));
    return undefined;
  }

  /** slide makes a session last longer from now on, if it is time to. */
  async #slide(door: Door, session: Session, isShared: boolean, context: Context): Promise<string | undefined> {
    const now = this.#world.now();
    const again = Math.min(touchAgain, session.length / 3);
    if (isShared || now - session.issued < again || now - (this.#touched.get(session.pass) ?? -Infinity) < again) return undefined;
    const slid = { ...session, issued: now, ends: Math.min(now + session.length, session.most) };
    remember(this.#touched, session.pass, now);
    if (isFree(session)) door.link.gate.stay(idOf(session), slid.ends, now);
    else if (!this.#tell(door, session, "touch", context)) return undefined;
    return this.cookieOf(door, slid);
  }

  /** tell has a room told about a session, which visitors do not wait for. False: too much is waiting. */
  #tell(door: Door, session: Session, kind: "touch" | "release", context: Context): boolean {
    const isTaken = this.#batches.add(door, kind, session, this.#under(context), context.isShort ? 0 : undefined);
    if (!isTaken) this.counts.dropped++;
    return isTaken;
  }

  /** tick has this isolate report, when it is time to. */
  #tick(state: State, context: Context): void {
    this.#reporter?.tick(this.#ground(state), this.#under(context), context.isShort ?? false);
  }

  #ground({ serial, doors }: State): Ground {
    return { name: this.#source.name, serial, doors: [...doors.values()] };
  }

  #under(context: Context): Under {
    return (work) => context.waitUntil?.(work);
  }

  /** cookieOf returns the Set-Cookie header of a session: until the browser closes, for the cookie itself says how long it is good. */
  async cookieOf(door: Door, session: Session): Promise<string> {
    return `${door.cookie}=${await this.#signer.format(session)}; Path=/; HttpOnly; Secure; SameSite=Lax`;
  }

  /** find returns the request's session for a door, if one goes on and the request shows that it comes from the browser that has it. */
  async find(request: Request, door: Door, client: string): Promise<Session | undefined> {
    for (const session of await this.sessions(request, door)) if (await this.#isHolder(request, door, session, client)) return session;
    return undefined;
  }

  /** sessions returns the request's sessions of a door that go on. */
  async sessions(request: Request, door: Door): Promise<Session[]> {
    const all = await Promise.all(valuesOf(request, door.cookie).map((text) => this.#signer.parse(text)));
    return all.filter((session) => session !== undefined).filter((session) => this.#goesOn(session, door));
  }

  /** goesOn reports whether a session is one of the door and not over. */
  #goesOn(s: Session, door: Door): boolean {
    const now = this.#world.now();
    if (isFree(s) && door.room.mode !== "safety-net") return false;
    return s.room === door.tag && now < s.ends && now < s.most && !this.#over.has(s.pass);
  }

  /**
   * isHolder reports whether the client may use a session: it proves that it has
   * the key that the session is tied to, or is of the network or the family, and
   * not one of too many clients.
   */
  async #isHolder(request: Request, door: Door, session: Session, client: string): Promise<boolean> {
    const isBrowser = door.room.bind === "browser";
    const bind = await door.bindOf(client, agentOf(request));
    if (isBrowser && session.key !== noKey) {
      if ((await this.prove(request, door, session, ageOf(session, opensPage(request)))) === undefined) return false;
    } else if (bind !== session.bind) return false;
    if (!isBrowser || this.#holders.add(session.pass, (await networkOf(client)) + bind, this.now())) return true;
    this.counts.copied++;
    return false;
  }

  /** prove returns the thumbprint of the key by which the request proves a session; undefined: it has no proof that is at most so old. */
  prove(request: Request, door: Door, session: Session, age: number): Promise<string | undefined> {
    return this.#proofs.keyOf(request, valuesOf(request, door.proof), door.room.url, session, age, this.now());
  }

  /** beginning returns what a request says of the free session that begins with it. */
  async beginning({ session, isNew }: Visit): Promise<string | undefined> {
    return session && isNew ? this.#signer.format(session) : undefined;
  }

  /** begun reads what beginning returns. */
  async begun(request: Request, door: Door, client: string): Promise<Session | undefined> {
    const session = await this.#signer.parse(request.headers.get(begunHeader) ?? "");
    return session && this.#goesOn(session, door) && (await this.#isHolder(request, door, session, client)) ? session : undefined;
  }

  /** pass decides about a visitor without a session of a room in mode safety-net; undefined: no free session begins. */
  async pass(door: Door, state: State, client: string, agent: string): Promise<Session | undefined> {
    const { gate } = door.link;
    await this.#reporter?.ready(door, this.#ground(state));
    const [bind, network] = [await door.bindOf(client, agent), prefixOf(client)];
    const passes = gate.passes(this.now(), network); // from here on nobody else comes between
    if (passes === "turned" || passes === "crowded") this.counts[passes]++;
    // For it may be something in front of this platform.
    if (passes === "crowded") this.tell("visitors of one network wait, for many of them got in within a minute", { room: door.name, client });
    if (passes !== "begins" || !gate.told) return undefined;
    const session = door.free(gate.told.length, bind);
    gate.begin(idOf(session), session.ends, this.now(), network);
    this.counts.started++;
    return session;
  }

  /** tell logs something about a request, once a minute. */
  tell(text: string, detail: Record<string, unknown>): void {
    if (this.now() - (this.#told.get(text) ?? -Infinity) < tellAgain) return;
    this.#told.set(text, this.now());
    this.#world.log("warn", text, detail);
  }

  /** returns says what is known of ways back from a room. The first whom an isolate leads there wait for that, unless it ends with them. */
  async returns(door: Door, state: State, { isShort, isKept }: Context): Promise<Returns | undefined> {
    if (!door.link.returns && (!isShort || isKept)) await this.#reporter?.ready(door, this.#ground(state));
    return door.link.returns;
  }

  /** replace ends a free session whose visitor has a pass now. */
  replace(door: Door, session: Session): void {
    this.#end(session.pass);
    door.link.gate.end(idOf(session));
  }

  /** redeem takes a pass. It throws a Refusal. */
  async redeem(door: Door, token: string, client: string, agent: string): Promise<Session> {
    const pass = await verify(token, door.room, this.#world.now(), (id) => door.key(id), this.#options.ed25519 ?? webEd25519);
    const session = pass && (await door.redeem(pass, client, agent, await this.#signer.clientOf(door.room.url, client, agent)));
    if (!session || !this.#goesOn(session, door)) throw new Refusal("pass", "no valid pass");
    return session;
  }

  /**
   * probe asks a room whether it is there, and so has its keys before visitors
   * come with passes. Only the first visitors of an isolate wait for that.
   */
  async probe(door: Door, context: Context): Promise<void> {
    const { link } = door;
    if (link.busyUntil > this.#world.now()) return link.isKnown ? undefined : door.others();
    const again = link.since === undefined ? (this.#options.probe ?? defaultProbe) : probeAgain;
    if (this.#world.now() - link.probed < again) return undefined;
    const asked = door.fetchKeys().catch((error: unknown) => {
      if (error instanceof Refusal && error.why !== "unreachable") this.#world.log("warn", "no keys of the room", { room: door.name, error: error.message });
    });
    if (!link.isKnown) await asked;
    else context.waitUntil?.(asked);
  }

  now(): number {
    return this.#world.now();
  }

  get page(): string {
    return this.#options.page ?? "";
  }

  /** current returns the rules in force; undefined: there have never been any. Until there are, all visitors ask. */
  async #current(context: Context): Promise<State | undefined> {
    const { rulesURL } = this.#options;
    const first = this.#state ? undefined : await this.#source.first();
    if (rulesURL !== undefined && (!this.#state || this.#world.now() - this.#pulled >= rulesAgain)) {
      this.#pulled = this.#world.now();
      const pulled = this.#pull(rulesURL, context).catch((error: unknown) => this.#unused(error));
      if (this.#state) context.waitUntil?.(pulled);
      else await pulled;
    }
    if (!this.#state && first) await this.#use(first).catch((error: unknown) => this.#unused(error));
    return this.#state;
  }

  #unused(error: unknown): undefined {
    this.#world.log("error", "new rules are not used: the ones before stay", { error: String(error) });
  }

  async #pull(url: string, context: Context): Promise<void> {
    const found = await this.#source.pull(url);
    if (!found) return;
    await this.#use(found);
    this.#under(context)(this.#source.save());
    this.#world.log("info", "new rules", { rules: found.site.list.filter(({ name }) => !name.startsWith("default:")).length, rooms: found.site.rooms.size, serial: String(found.serial) });
  }

  /** check refuses rules that this connector cannot keep. */
  #check(site: Site): void {
    for (const [name, room] of site.rooms) {
      if (room.failure === "page" && !this.#options.page) throw new Error(`room ${name}: a room's failure is "page": give the page`);
      if (room.mode === "safety-net" && !this.#reporter) throw new Error(`room ${name}: the mode safety-net needs a server and a token, for reports`);
    }
  }

  /** use takes rules into force, unless newer ones are. Rooms that stay keep what is known of them, for all requests that come at once. */
  async #use({ site, serial }: Found): Promise<void> {
    this.#check(site);
    const rooms = await Promise.all([...site.rooms].map(async ([name, room]) => ({ name, room, tag: await tagOf(room.url, room.origin) })));
    if (this.#state && this.#state.serial > serial) return;
    const next: State = { site, serial, doors: new Map(), byURL: new Map() };
    for (const { name, room, tag } of rooms) {
      const door = Door.make(name, room, tag, next.byURL.get(room.url) ?? this.#state?.doors.get(name), this.#world);
      next.doors.set(name, door);
      next.byURL.set(room.url, door);
    }
    this.#state = next;
  }
}

/** socketOf gives a socket on, which has no body, where the platform can. Else the client would wait for what never comes. */
async function socketOf(response: Response & { webSocket?: unknown }): Promise<Response> {
  if (response.webSocket) return response;
  await response.body?.cancel();
  return new Response("sockets do not get through here\n", { status: 501, headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" } });
}

/** remember adds to a map that forgets what is oldest. */
function remember(map: Map<string, number>, name: string, value: number): void {
  map.delete(name);
  map.set(name, value);
  forget(map, maxKnown);
}

/** forget leaves no more than so many, of which the oldest are the first. */
function forget(all: Map<string, unknown> | Set<string>, most: number): void {
  for (const oldest of all.keys()) {
    if (all.size <= most) return;
    all.delete(oldest);
  }
}

/** valuesOf returns the values of a request's cookies of a name. */
function valuesOf(request: Request, cookie: string): string[] {
  const parts = (request.headers.get("Cookie") ?? "").split(";").map((part) => part.trim());
  return parts.filter((part) => part.startsWith(`${cookie}=`)).map((part) => part.slice(cookie.length + 1));
}

/** expired returns the Set-Cookie header that takes a session away. */
function expired(door: Door): string {
  return `${door.cookie}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax`;
}

/** idOf names a free session in reports. */
function idOf({ pass }: Session): string {
  return base64url(toBytes(pass));
}
