// What happens to a request, as package connector decides it.
import { agentOf, escape, isNavigation, json, opensPage, own, ownPage, queueHeader, splitQuery } from "./answer.ts";
import { utf8 } from "./bytes.ts";
import type { Connector, Context, State, Visit } from "./connector.ts";
import { Refusal, type Door } from "./door.ts";
import { earlyRules } from "./early.ts";
import { bindPage, hold, tell, type VisitToProve } from "./hold.ts";
import { allowNeighbour, bindPath, enterPath, neighbour, ownPath, releasePath } from "./own.ts";
import { issuerOf } from "./pass.ts";
import { proofFresh, subjectOf } from "./proof.ts";
import { joinURL, returnHeader, signReturn, type Returns, type WayBack } from "./return.ts";
import { decide, malformed, wrongHost, type Decision } from "./rules.ts";
import { isFree, noKey, uuidText, type Session } from "./session.ts";
import { hostName, isWeb, urlOf } from "./target.ts";

/** Inquiry is a request that is looked at. */
export class Inquiry {
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
    if (this.#url.pathname === enterPath) return this.#enter(state);
    if (this.#url.pathname === releasePath) return this.#release(state);
    if (this.#url.pathname === bindPath) return this.#bind(state);
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
      await this.#observe();
      return { request: this.#forSite() };
    }
    return decision.outcome === "closed" ? this.#shut(state, this.door) : this.#wait(this.door, state);
  }

  /** early answers while there never were rules. */
  async early(): Promise<Visit | Response> {
    const decision = decide(earlyRules(), this.#asked(), this.#c.now());
    if (decision.rule === malformed) return this.#block(decision);
    if (decision.outcome !== "bypass" || this.#url.pathname.startsWith(ownPath)) return this.#c.held(this.#request);
    this.#c.counts.bypassed++;
    return { request: this.#forSite() };
  }

  /** resume finds the session with which the request was let through. */
  async resume(state: State): Promise<Visit> {
    const { outcome, room } = decide(state.site, this.#asked(), this.#c.now());
    const door = outcome === "queue" ? state.doors.get(room) : undefined;
    const begun = door && (await this.#c.begun(this.#request, door, this.#context.client));
    const session = begun ?? (door && (await this.#c.find(this.#request, door, this.#context.client)));
    return door && session ? { request: this.#request, door, session, isNew: begun !== undefined } : { request: this.#request };
  }

  /** asked is the request as rules see it: the address is the one the site will get. */
  #asked() {
    const header = (name: string): string[] => (name === "host" || name === "transfer-encoding" ? [] : this.#header(name));
    const target = isWeb(this.#url) ? this.#target() : this.#url.href; // which rules refuse
    return { method: this.#request.method, host: this.#host(), target, header, client: this.#context.client };
  }

  /** host is that of the address, or what was sent for one and is none: some platforms put that in front of the path. */
  #host(): string {
    const sent = this.#header("host").join("");
    return hostName(sent) === undefined ? sent : this.#url.host;
  }

  /** header returns a header as bytes. */
  #header(name: string): string[] {
    const value = this.#request.headers.get(name);
    return value === null ? [] : [/[^\0-\xff]/.test(value) ? utf8(value) : value];
  }

  #target(): string {
    return this.#url.pathname + (this.#query ? `?${this.#query}` : "");
  }

  /** observe counts a request that would have waited if its room were not off. */
  async #observe(): Promise<void> {
    const { door } = this;
    if (door?.room.mode !== "off" || (await this.#c.find(this.#request, door, this.#context.client))) return;
    this.#c.counts.observed++;
    door.link.observed.add(this.#c.now());
  }

  /** wait lets a request through that has a session, or with which a free one begins. */
  async #wait(door: Door, state: State): Promise<Visit | Response> {
    const { client } = this.#context;
    const session = await this.#c.find(this.#request, door, client);
    await this.#c.probe(door, this.#context);
    if (!session && (await this.#canProve(door))) return this.#toBind(this.#query);
    if (session) {
      this.#c.counts.passed++;
      return this.#visit(door, session);
    }
    const free = door.room.mode === "safety-net" ? await this.#c.pass(door, state, client, agentOf(this.#request)) : undefined;
    if (free) return { ...this.#visit(door, free), isNew: true };
    return door.link.since === undefined ? this.#lead(state, door) : this.fail(door);
  }

  #visit(door: Door, session: Session): Visit {
    const ticket = isFree(session) ? {} : { "X-Proofline-Ticket": uuidText(session.ticket) };
    return { request: this.#forSite({ ...ticket, "X-Proofline-Room": door.name }), door, session };
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
    const door = !issuer || this.door?.room.url === issuer.room.url ? this.door : issuer; // of two names of a room that of this page
    if (!door || (decision.outcome === "bypass" && !issuer)) return undefined; // nobody's business here
    const before = await this.#c.find(this.#request, door, this.#context.client);
    if (before && !isFree(before)) return this.#cleaned(rest);
    try {
      const session = await this.#c.redeem(door, token, this.#context.client, this.#header("user-agent").join(""));
      this.#c.counts.redeemed++;
      if (before) this.#c.replace(door, before); // the visitor counts once
      return this.#entered(door, rest, await this.#c.cookieOf(door, session));
    } catch (error) {
      this.#query = rest; // neither the site nor the way back gets the pass
      if (!(error instanceof Refusal)) throw error;
      if (decision.outcome === "bypass") return this.#cleaned(rest);
      if (error.why === "unreachable") await this.#c.probe(door, this.#context); // no visitor shapes that question
      if (error.why === "unreachable" && before) return undefined; // whoever is in goes on
      if (error.why === "unreachable" && this.door?.link === door.link) return this.fail(this.door);
      if (error.why !== "pass") return this.#c.held(this.#request); // how another room fails says nothing about that of this page
    }
    this.#c.counts.refused++;
    return undefined;
  }

  /** enter uses up the pass, if there is one, and leads to the page at another host of the site. */
  async #enter(state: State): Promise<Response> {
    const { token, rest } = splitQuery(this.#query);
    if (token !== undefined) {
      const answer = await this.#arrive(state, { outcome: "bypass", room: "", rule: "" }, token, rest);
      return answer instanceof Response ? answer : this.#cleaned(rest);
    }
    const to = neighbour(state.site, this.#url, this.#url.searchParams.get("to") ?? "");
    const room = this.#url.searchParams.get("room");
    if (to && room !== null) return this.#waitFor(state, room);
    if (to) return own(this.#request, 303, { Location: to.href });
    return own(this.#request, 404, { "Content-Type": "text/plain; charset=utf-8" }, "to must be a page of the site, whose host its rules name\n");
  }

  /** release ends the visitor's sessions. */
  async #release(state: State): Promise<Response> {
    const answer = own(this.#request, 204, {});
    for (const cookie of await this.#c.leave(this.#request, state, this.#context)) answer.headers.append("Set-Cookie", cookie);
    return answer;
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

  /** canProve reports whether the request opens a page and has a session whose key the browser may prove to have. */
  async #canProve(door: Door): Promise<boolean> {
    if (door.room.bind !== "browser" || !opensPage(this.#request)) return false;
    return (await this.#c.sessions(this.#request, door)).some(({ key }) => key !== noKey);
  }

  /** entered goes on to the page that was asked for, after a pass was used up: browsers with scripts by way of a key. */
  #entered(door: Door, query: string, cookie: string): Response {
    const { headers, method } = this.#request;
    const isBrowser = headers.get("Sec-Fetch-Mode") === "navigate" && headers.get("Sec-Fetch-Dest") === "document";
    return door.room.bind === "browser" && method === "GET" && isBrowser ? this.#toBind(query, cookie) : this.#cleaned(query, cookie);
  }

  /** toBind sends a browser to the page that proves a key, and from there to the page that it asked for. */
  #toBind(query: string, cookie?: string): Response {
    const to = localPath(this.#url.pathname) + (query ? `?${query}` : "");
    return own(this.#request, 303, { Location: `${bindPath}?to=${escape(to)}`, ...(cookie === undefined ? {} : { "Set-Cookie": cookie }) });
  }

  /** bind ties sessions to keys (POST), or answers with the page that proves them. */
  async #bind(state: State): Promise<Response> {
    if (this.#request.method === "POST") return this.#tie(state);
    const to = this.#url.searchParams.get("to") ?? "";
    if (!to || to !== localPath(to) || /[\0-\x1f\x7f]/.test(to)) return own(this.#request, 404, { "Content-Type": "text/plain; charset=utf-8" }, "to must be a path of this site\n");
    const visits: VisitToProve[] = [];
    for (const door of state.doors.values()) {
      const session = door.room.bind === "browser" ? (await this.#c.sessions(this.#request, door)).find((s) => !isFree(s)) : undefined;
      if (session) visits.push({ name: door.name, subject: await subjectOf(door.room.url, session), room: door.room.url, bound: session.key !== noKey });
    }
    return bindPage(this.#request, to, this.#c.now(), visits);
  }

  /** tie ties each session of the request that has no key to the key of its proof. */
  async #tie(state: State): Promise<Response> {
    const answer = own(this.#request, 204, {});
    for (const door of state.doors.values()) {
      const session = door.room.bind === "browser" ? await this.#c.find(this.#request, door, this.#context.client) : undefined;
      if (!session || session.key !== noKey || isFree(session)) continue;
      const key = await this.#c.prove(this.#request, door, session, proofFresh);
      if (key !== undefined) answer.headers.append("Set-Cookie", await this.#c.cookieOf(door, { ...session, key }));
    }
    return answer;
  }

  /** cleaned leads to the same URL without the pass. The address is relative, and cannot be read as one of another host. */
  #cleaned(query: string, cookie?: string): Response {
    const location = localPath(this.#url.pathname) + (query ? `?${query}` : "");
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
  async #lead(state: State, door: Door): Promise<Response> {
    this.#c.counts.queued++;
    const page = this.#wanted();
    const said = await this.#c.returns(door, state, this.#context);
    const back = await this.#wayBack(state, door, page, said);
    const join = joinURL(door.room.url, back);
    if (isNavigation(this.#request)) return own(this.#request, this.#request.method === "POST" ? 303 : 302, { Location: join });
    const how = back.sig && back.to === page ? back.sig : said?.isNeeded && this.#hasEnter(state) ? "enter" : "";
    const shared = allowNeighbour(state.site, this.#url, this.#request.headers.get("Origin"));
    const headers = { [queueHeader]: door.room.url, ...(how && { [returnHeader]: how }), ...shared };
    return json(this.#request, 403, { error: "queue", join, room: door.room.url }, headers);
  }

  /** wayBack returns the way back from a room to a URL of this host, signed where a pass is taken. */
  async #wayBack(state: State, door: Door, to: string, said: Returns | undefined): Promise<WayBack> {
    if (!said || !to) return { to, sig: "" };
    if (this.#leadsTo(state, door, to)) return { to, sig: await signReturn(said.key, door.room.url, to) };
    if (said.isNeeded && this.#hasEnter(state)) return this.#byEnter(state, door, to, said);
    if (said.isNeeded && state.site.hosts.length === 0) this.#c.tell("the room leads visitors to its first target alone, for it wants signed ways back, and nothing is signed until the rules name the hosts of the site", { room: door.name });
    return { to, sig: "" };
  }

  /** leadsTo tells whether who opens a URL is led to the room by the rules, which name its host: anybody can ask for a page of any other. */
  #leadsTo(state: State, door: Door, to: string): boolean {
    if (state.site.hosts.length === 0) return false;
    const { outcome, room } = decide(state.site, { ...this.#asked(), method: "GET", target: to }, this.#c.now());
    return outcome === "queue" && state.doors.get(room)?.room.url === door.room.url;
  }

  /** hasEnter tells whether enterPath at this host leads to its pages. */
  #hasEnter(state: State): boolean {
    return neighbour(state.site, this.#url, this.#url.origin) !== undefined;
  }

  /** byEnter returns the way back by enterPath, where a pass is used up and taken out of the URL, to a page of the site. */
  async #byEnter(state: State, door: Door, page: string, said: Returns | undefined): Promise<WayBack> {
    const to = `${this.#url.origin}${enterPath}?to=${escape(page)}`;
    return { to, sig: said && this.#hasEnter(state) ? await signReturn(said.key, door.room.url, to) : "" };
  }

  /** waitFor leads a visitor to a room, and back by enterPath: a script asked that knows the room's URL. */
  async #waitFor(state: State, room: string): Promise<Response> {
    const door = state.byURL.get(room);
    if (!door) return own(this.#request, 404, { "Content-Type": "text/plain; charset=utf-8" }, "room must be the URL of one that the rules name\n");
    if (door.room.mode === "closed") return this.#shut(state, door);
    this.#c.counts.queued++;
    const said = await this.#c.returns(door, state, this.#context);
    const back = await this.#byEnter(state, door, this.#url.searchParams.get("to") ?? "", said);
    return own(this.#request, 303, { Location: joinURL(door.room.url, back) });
  }

  /** shut refuses a visitor of a closed room. Nobody is led there: whoever waited would come back here. */
  #shut(state: State, door: Door): Promise<Response> {
    this.#c.counts.blocked++;
    const shared = allowNeighbour(state.site, this.#url, this.#request.headers.get("Origin"));
    return tell(this.#request, 403, { error: "closed", room: door.room.url }, shared);
  }

  /** block refuses a request for good. */
  #block({ rule }: Decision): Promise<Response> {
    this.#c.counts.blocked++;
    if (rule === wrongHost) this.#c.tell("a request is blocked, for its host is not among the hosts of the rules", { host: this.#host().slice(0, 100) });
    const [status, error] = rule === malformed ? ([400, "malformed"] as const) : rule === wrongHost ? ([421, "host"] as const) : ([403, "blocked"] as const);
    return tell(this.#request, status, { error });
  }
}

/** isClaim tells whether a header is one that only connectors set. Some servers take _ for -. */
function isClaim(name: string): boolean {
  return /^x[-_]proofline[-_]|^x[-_](original|rewrite)[-_]url$/i.test(name);
}

/** localPath returns a path that cannot be read as the address of another host. */
function localPath(path: string): string {
  return "/" + path.replace(/^[/\\]+/, "");
}
