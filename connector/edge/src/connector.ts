// The connector: what happens to a request, as package connector does it.
import { escape, isNavigation, json, own, ownPage, queueHeader, splitQuery } from "./answer.ts";
import { utf8 } from "./bytes.ts";
import { Door, outgoing, Refusal, type Opening, type World } from "./door.ts";
import { hold } from "./hold.ts";
import { serveOwn } from "./own.ts";
import { issuerOf, verify, webEd25519, type Ed25519 } from "./pass.ts";
import { decide, malformed, parse, wrongHost, type Decision, type Site } from "./rules.ts";
import { Signer, uuidText, type Session } from "./session.ts";
import { urlOf } from "./target.ts";

export const defaultProbe = 10_000; // milliseconds between questions whether a room is there
const probeAgain = 1000; // while it is not
const rulesAgain = 10_000; // between questions for new rules
const touchAgain = 60_000; // between touches of a session
const maxKnown = 10_000; // sessions of which something is remembered
const maxUnderWay = 200; // touches and releases

/** Options is what connector needs. Key, site, and rules or rulesURL must be given. */
export interface Options {
  /** rules is a document (connector/rules/FORMAT.md). With rulesURL it counts until that has answered. */
  rules?: string | undefined;
  /** rulesURL is asked every 10 s: https, or http on this machine. */
  rulesURL?: string | undefined;
  /** key signs the cookies: 32 random bytes or more, the same in all connectors of a site. */
  key: Uint8Array<ArrayBuffer>;
  /** site sends a request to the site. */
  site: (request: Request) => Promise<Response>;
  /** ask sends a request to a room, or for rules. It follows no redirects. */
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
}

const counted = ["bypassed", "passed", "queued", "blocked", "held", "opened", "redeemed", "refused", "touches", "released", "dropped", "faults"] as const;

/** Stats counts what this isolate did since it began. */
export type Stats = Record<(typeof counted)[number], number> & { rooms: Record<string, { downSince?: number | undefined; openings: Opening[] }> };

/** Visit is a request that is under way to the site. */
export interface Visit {
  request: Request;
  door?: Door;
  session?: Session; // none: without a pass
}

interface State {
  site: Site;
  doors: Map<string, Door>; // by name
  byURL: Map<string, Door>;
}

const consoleLog: World["log"] = (level, text, detail) => console[level](`proofline: ${text}`, JSON.stringify(detail));

export class Connector {
  readonly #options: Options;
  readonly #world: World;
  readonly #signer: Signer;
  readonly #over = new Map<string, number>(); // sessions that are over, by pass; until when the cookie is good
  readonly #touched = new Map<string, number>(); // when sessions were touched here, by pass
  readonly counts = Object.fromEntries(counted.map((name) => [name, 0])) as Record<(typeof counted)[number], number>;
  #state: State | undefined;
  #first: Site | undefined; // rules that are there from the start
  #etag = "";
  #pulled = -Infinity;
  #underWay = 0;

  constructor(options: Options) {
    if (options.key.length < 32) throw new Error("the key for cookies must have at least 32 random bytes");
    if (options.rules === undefined && options.rulesURL === undefined) throw new Error("rules or rulesURL must be given");
    if (options.rulesURL !== undefined && !isSafe(options.rulesURL)) throw new Error("rulesURL must be a URL of https (http on this machine)");
    this.#options = options;
    this.#world = { ask: options.ask ?? ((request) => fetch(request)), now: options.now ?? Date.now, log: options.log ?? consoleLog };
    this.#signer = new Signer(options.key);
    if (options.rules !== undefined) this.#first = this.#checked(options.rules);
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
    for (const [name, { link }] of this.#state?.doors ?? []) rooms[name] = { downSince: link.since, openings: link.openings.map((o) => ({ ...o })) };
    return { ...this.counts, rooms };
  }

  /** guard returns the request as the site gets it, or an answer instead. A fault of ours is a failure of the room. */
  async guard(request: Request, context: Context): Promise<Visit | Response> {
    const own = serveOwn(request);
    if (own) return own;
    const inquiry = new Inquiry(this, request, context);
    try {
      const state = await this.#current(context);
      if (!state) return await this.#held(request);
      return await inquiry.run(state);
    } catch (error) {
      this.counts.faults++;
      this.#world.log("error", "connector failed", { error: String(error) });
      return inquiry.door ? inquiry.fail(inquiry.door) : this.#held(request);
    }
  }

  /** finish does what the site says, and keeps the session going. */
  async finish({ door, session }: Visit, response: Response, context: Context): Promise<Response> {
    if (response.status === 101) return response; // a socket, which has no body to give on
    const commands = (response.headers.get("Proofline-Command") ?? "").split(",").map((c) => c.trim());
    const isRelease = commands.includes("release");
    const cookie = door && session ? await this.#after(door, session, isRelease, response, context) : undefined;
    if (!cookie && !response.headers.has("Proofline-Command")) return response;
    const out = new Response(response.body, response);
    out.headers.delete("Proofline-Command");
    if (cookie) out.headers.append("Set-Cookie", cookie);
    return out;
  }

  /** after returns the cookie that goes with an answer, if any does. */
  async #after(door: Door, session: Session, isRelease: boolean, response: Response, context: Context): Promise<string | undefined> {
    const now = this.#world.now();
    if (isRelease) {
      remember(this.#over, session.pass, session.most);
      this.counts.released++;
      this.#tell(door, session, "release", context);
      return `${door.cookie}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax`;
    }
    const again = Math.min(touchAgain, session.length / 3);
    const isShared = /public|s-maxage/i.test(response.headers.get("Cache-Control") ?? ""); // others must not get the cookie
    if (isShared || now - session.issued < again || now - (this.#touched.get(session.pass) ?? -Infinity) < again) return undefined;
    remember(this.#touched, session.pass, now);
    if (!this.#tell(door, session, "touch", context)) return undefined;
    return this.cookieOf(door, { ...session, issued: now, ends: Math.min(now + session.length, session.most) });
  }

  /** tell has a room told about a session, which visitors do not wait for. False: too much is under way. */
  #tell(door: Door, session: Session, what: "touch" | "release", context: Context): boolean {
    if (this.#underWay >= maxUnderWay) {
      this.counts.dropped++;
      return false;
    }
    this.#underWay++;
    const told = door.call("POST", `${door.room.url}/sessions/${what}`, session.token).then(({ status }) => {
      if (status === 410 || status === 401) remember(this.#over, session.pass, session.most);
      else if (status !== 200) this.#world.log("warn", "room does not take what it is told", { room: door.name, what, status });
      else if (what === "touch") this.counts.touches++;
    });
    this.#background(context, told.catch(() => {}).finally(() => this.#underWay--));
    return true;
  }

  #background(context: Context, work: Promise<unknown>): void {
    context.waitUntil?.(work);
  }

  /** cookieOf returns the Set-Cookie header of a session: until the browser closes, for the cookie itself says how long it is good. */
  async cookieOf(door: Door, session: Session): Promise<string> {
    return `${door.cookie}=${await this.#signer.format(session)}; Path=/; HttpOnly; Secure; SameSite=Lax`;
  }

  /** find returns the request's session for a door, if one goes on. */
  async find(request: Request, door: Door, client: string): Promise<Session | undefined> {
    for (const part of (request.headers.get("Cookie") ?? "").split(";")) {
      const text = part.trim();
      if (!text.startsWith(`${door.cookie}=`)) continue;
      const session = await this.#signer.parse(text.slice(door.cookie.length + 1));
      if (session && (await this.goesOn(session, door, client))) return session;
    }
    return undefined;
  }

  /** goesOn tells whether a session is one of the door, from where it began, and not over. */
  async goesOn(s: Session, door: Door, client: string): Promise<boolean> {
    const now = this.#world.now();
    return s.room === door.tag && now < s.ends && now < s.most && s.bind === (await door.bindOf(client)) && !this.#over.has(s.pass);
  }

  /** redeem takes a pass. It throws a Refusal. */
  async redeem(door: Door, token: string, client: string): Promise<Session> {
    const pass = await verify(token, door.room, this.#world.now(), (id) => door.key(id), this.#options.ed25519 ?? webEd25519);
    const session = pass && (await door.redeem(pass, client));
    if (!session || !(await this.goesOn(session, door, client))) throw new Refusal("pass", "no valid pass");
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
    else this.#background(context, asked);
  }

  now(): number {
    return this.#world.now();
  }

  get page(): string {
    return this.#options.page ?? "";
  }

  async #held(request: Request): Promise<Response> {
    this.counts.held++;
    return hold(request);
  }

  /** current returns the rules in force; undefined: there have never been any. Until there are, all visitors ask. */
  async #current(context: Context): Promise<State | undefined> {
    const { rulesURL } = this.#options;
    if (rulesURL !== undefined && (!this.#state || this.#world.now() - this.#pulled >= rulesAgain)) {
      this.#pulled = this.#world.now();
      const pulled = this.#pull(rulesURL).catch((error: unknown) => {
        this.#world.log("error", "new rules are not used: the ones before stay", { error: String(error) });
      });
      if (this.#state) this.#background(context, pulled);
      else await pulled;
    }
    if (!this.#state && this.#first) await this.#use(this.#first);
    return this.#state;
  }

  async #pull(url: string): Promise<void> {
    const headers: HeadersInit = this.#etag ? { "If-None-Match": this.#etag } : {};
    const response = await this.#world.ask(outgoing(url, { headers }));
    if (response.status === 304) return;
    if (response.status !== 200) throw new Error(`get rules from ${url}: status ${response.status}`);
    const site = this.#checked(await response.text());
    await this.#use(site);
    this.#etag = response.headers.get("ETag") ?? "";
    this.#world.log("info", "new rules", { rules: site.list.length, rooms: site.rooms.size });
  }

  /** checked reads rules that this connector can keep. */
  #checked(text: string): Site {
    const site = parse(text);
    for (const [name, room] of site.rooms) {
      if (room.failure === "page" && !this.#options.page) throw new Error(`room ${name}: a room's failure is "page": give the page`);
      if (room.mode === "safety-net") throw new Error(`room ${name}: the mode safety-net needs a server and a token to report to`);
    }
    return site;
  }

  /** use takes rules into force. Rooms that stay keep what is known of them. */
  async #use(site: Site): Promise<void> {
    const next: State = { site, doors: new Map(), byURL: new Map() };
    for (const [name, room] of site.rooms) {
      const door = await Door.make(name, room, this.#state?.doors.get(name), this.#world);
      next.doors.set(name, door);
      next.byURL.set(room.url, door);
    }
    this.#state = next;
  }
}

/** remember adds to a map that forgets what is oldest. */
function remember(map: Map<string, number>, name: string, value: number): void {
  map.delete(name);
  map.set(name, value);
  for (const oldest of map.keys()) {
    if (map.size <= maxKnown) return;
    map.delete(oldest);
  }
}

/** isSafe tells whether nobody on the way can change what a URL gives. */
function isSafe(text: string): boolean {
  const { protocol = "", hostname = "" } = urlOf(text) ?? {};
  return protocol === "https:" || (protocol === "http:" && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname));
}

/** Inquiry is a request that is looked at. */
class Inquiry {
  readonly #c: Connector;
  readonly #request: Request;
  readonly #context: Context;
  readonly #url: URL;
  #query: string;
  door: Door | undefined; // that the rules name

  constructor(c: Connector, request: Request, context: Context) {
    [this.#c, this.#request, this.#context, this.#url] = [c, request, context, new URL(request.url)];
    this.#query = this.#url.search.slice(1);
  }

  async run(state: State): Promise<Visit | Response> {
    const decision = decide(state.site, this.#asked(), this.#c.now());
    this.door = state.doors.get(decision.room);
    if (decision.outcome === "block") return this.#block(decision);
    const { token, rest } = splitQuery(this.#query);
    if (token !== undefined && decision.outcome !== "closed") {
      const answer = await this.#arrive(state, decision, token, rest);
      if (answer) return answer;
    }
    if (decision.outcome === "bypass" || !this.door) {
      this.#c.counts.bypassed++;
      return { request: this.#forSite() };
    }
    return decision.outcome === "closed" ? this.#lead(this.door, "closed") : this.#wait(this.door);
  }

  /** asked is the request as rules see it: the address is the one the site will get. */
  #asked() {
    const { headers, method } = this.#request;
    const header = (name: string): string[] => {
      const value = name === "host" || name === "transfer-encoding" ? null : headers.get(name);
      return value === null ? [] : [/[^\0-\xff]/.test(value) ? utf8(value) : value];
    };
    return { method, host: this.#url.host, target: this.#target(), header, client: this.#context.client };
  }

  #target(): string {
    return this.#url.pathname + (this.#query ? `?${this.#query}` : "");
  }

  /** wait lets a request through that has a session. */
  async #wait(door: Door): Promise<Visit | Response> {
    const session = await this.#c.find(this.#request, door, this.#context.client);
    await this.#c.probe(door, this.#context);
    if (session) {
      this.#c.counts.passed++;
      return { request: this.#forSite({ "X-Proofline-Ticket": uuidText(session.ticket), "X-Proofline-Room": door.name }), door, session };
    }
    return door.link.since === undefined ? this.#lead(door, "queue") : this.fail(door);
  }

  /** fail does what the rules say about a room that cannot be reached. */
  async fail(door: Door): Promise<Visit | Response> {
    if (door.opens()) {
      this.#c.counts.opened++;
      return { request: this.#forSite() };
    }
    this.#c.counts.held++;
    return door.room.failure === "page" && isNavigation(this.#request) ? ownPage(this.#request, this.#c.page) : hold(this.#request);
  }

  /** arrive takes a pass from the URL; undefined: the request goes on without it. */
  async #arrive(state: State, decision: Decision, token: string, rest: string): Promise<Visit | Response | undefined> {
    const issuer = state.byURL.get(issuerOf(token));
    const door = issuer ?? this.door;
    if (!door || (decision.outcome === "bypass" && !issuer)) return undefined; // nobody's business here
    if (await this.#c.find(this.#request, door, this.#context.client)) return this.#cleaned(rest);
    try {
      const session = await this.#c.redeem(door, token, this.#context.client);
      this.#c.counts.redeemed++;
      return this.#cleaned(rest, await this.#c.cookieOf(door, session));
    } catch (error) {
      this.#query = rest; // neither the site nor the way back gets the pass
      if (!(error instanceof Refusal)) throw error;
      if (decision.outcome === "bypass") return this.#cleaned(rest);
      if (error.why === "unreachable") return this.fail(door);
      if (error.why === "busy") {
        this.#c.counts.held++;
        return hold(this.#request);
      }
    }
    this.#c.counts.refused++;
    return undefined;
  }

  /** forSite returns the request as the site gets it, with what a connector says and nothing that claims to be that. */
  #forSite(said: Record<string, string> = {}): Request {
    const headers = new Headers(this.#request.headers);
    for (const name of [...headers.keys()]) if (isClaim(name)) headers.delete(name);
    for (const [name, value] of Object.entries(said)) headers.set(name, value);
    const url = this.#url.origin + this.#target();
    const request = url === this.#request.url ? this.#request : new Request(url, this.#request);
    return new Request(request, { headers, redirect: "manual" });
  }

  /** cleaned leads to the same URL without the pass. The address is relative, and cannot be read as one of another host. */
  #cleaned(query: string, cookie?: string): Response {
    const location = "/" + this.#url.pathname.replace(/^[/\\]+/, "") + (query ? `?${query}` : "");
    return own(this.#request, 303, { Location: location, ...(cookie === undefined ? {} : { "Set-Cookie": cookie }) });
  }

  /** wanted returns the URL that a visitor is to come back to. What was sent with a POST is lost, so that the page before it is wanted. */
  #wanted(): string {
    if (isNavigation(this.#request) && this.#request.method !== "POST") return this.#url.origin + this.#target();
    const referer = this.#request.headers.get("Referer") ?? "";
    const before = urlOf(referer);
    if (before?.origin !== this.#url.origin) return "";
    const { rest } = splitQuery(before.search.slice(1));
    return before.origin + before.pathname + (rest ? `?${rest}` : "");
  }

  /** lead sends a visitor to the room. */
  #lead(door: Door, why: "queue" | "closed"): Response {
    this.#c.counts.queued++;
    const to = why === "queue" ? this.#wanted() : "";
    const join = door.room.url + (to ? `?to=${escape(to)}` : "");
    if (isNavigation(this.#request)) return own(this.#request, this.#request.method === "POST" ? 303 : 302, { Location: join });
    return json(this.#request, 403, { error: why, join, room: door.room.url }, { [queueHeader]: door.room.url });
  }

  /** block refuses a request for good. */
  #block({ rule }: Decision): Response {
    this.#c.counts.blocked++;
    const [status, error] = rule === malformed ? ([400, "malformed"] as const) : rule === wrongHost ? ([421, "host"] as const) : ([403, "blocked"] as const);
    return json(this.#request, status, { error });
  }
}

/** isClaim tells whether a header is one that only connectors set. Some servers take _ for -. */
function isClaim(name: string): boolean {
  return /^x[-_]proofline[-_]|^x[-_](original|rewrite)[-_]url$/i.test(name);
}
