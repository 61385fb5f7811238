// How requests are checked. It works like guard.go of package connector.
import {
  agentOf,
  encodeQuery,
  isNavigation,
  json,
  opensPage,
  own,
  ownPage,
  queueHeader,
  splitQuery,
} from "./answer.ts";
import { utf8 } from "./bytes.ts";
import type { Connector, Context, State, Visit } from "./connector.ts";
import { earlyRules } from "./early.ts";
import { allowSiteOrigin, bindPath, enterPath, ownPath, releasePath, sitePage } from "./own.ts";
import { bindPage, refuse, retryLater, type VisitToProve } from "./pages.ts";
import { issuerOf } from "./pass.ts";
import { pageProofTTL, subjectOf } from "./proof.ts";
import { joinURL, type ReturnSigning, type ReturnTarget, returnHeader, signReturn } from "./return.ts";
import { Refusal, type RoomClient } from "./room.ts";
import { type Decision, decide, malformed, wrongHost } from "./rules.ts";
import { isUnqueued, noKey, type Session, uuidText } from "./session.ts";
import { hostName, isWeb, urlOf } from "./target.ts";

/** RequestCheck is a request being checked. */
export class RequestCheck {
  readonly #c: Connector;
  readonly #request: Request;
  readonly #context: Context;
  readonly #url: URL;
  #query: string;
  rm: RoomClient | undefined; // room of the matching rule

  constructor(c: Connector, request: Request, context: Context) {
    [this.#c, this.#request, this.#context, this.#url] = [c, request, context, new URL(request.url)];
    this.#query = this.#url.search.slice(1);
  }

  async run(state: State): Promise<Visit | Response> {
    if (this.#url.pathname === enterPath) return this.#enter(state);
    if (this.#url.pathname === releasePath) return this.#release(state);
    if (this.#url.pathname === bindPath) return this.#bind(state);
    const decision = decide(state.site, this.#asked(), this.#c.now());
    this.rm = state.rooms.get(decision.room);
    if (decision.outcome === "block") return this.#block(decision);
    const { token, rest } = splitQuery(this.#query);
    if (token !== undefined && decision.outcome !== "closed") {
      const answer = await this.#redeemInURL(state, decision, token, rest);
      if (answer) return answer;
    }
    if (decision.outcome === "bypass" || !this.rm) {
      this.#c.counts.bypassed++;
      await this.#observe();
      return { request: this.#forSite() };
    }
    return decision.outcome === "closed" ? this.#refuseClosed(state, this.rm) : this.#admitOrQueue(this.rm, state);
  }

  /** early checks a request while there are no rules. */
  async early(): Promise<Visit | Response> {
    const decision = decide(earlyRules(), this.#asked(), this.#c.now());
    if (decision.rule === malformed) return this.#block(decision);
    if (decision.outcome !== "bypass" || this.#url.pathname.startsWith(ownPath))
      return this.#c.retryPage(this.#request);
    this.#c.counts.bypassed++;
    return { request: this.#forSite() };
  }

  /** resume finds the session with which a request was admitted. */
  async resume(state: State): Promise<Visit> {
    const { outcome, room } = decide(state.site, this.#asked(), this.#c.now());
    const rm = outcome === "queue" ? state.rooms.get(room) : undefined;
    const begun = rm && (await this.#c.begun(this.#request, rm, this.#context.client));
    const session = begun ?? (rm && (await this.#c.find(this.#request, rm, this.#context.client)));
    return rm && session
      ? { request: this.#request, rm, session, isNew: begun !== undefined }
      : { request: this.#request };
  }

  /** asked is the request for the rules, with the address that the site will get. */
  #asked() {
    const header = (name: string): string[] =>
      name === "host" || name === "transfer-encoding" ? [] : this.#header(name);
    const target = isWeb(this.#url) ? this.#target() : this.#url.href; // the rules refuse it
    return { method: this.#request.method, host: this.#host(), target, header, client: this.#context.client };
  }

  /** host is the address's host, or a malformed Host header: some platforms prefix the path with it. */
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

  /** observe counts the request if it would have needed a session. */
  async #observe(): Promise<void> {
    const { rm } = this;
    if (rm?.room.mode !== "off" || (await this.#c.find(this.#request, rm, this.#context.client))) return;
    this.#c.counts.observed++;
    rm.roomState.observed.add(this.#c.now());
  }

  /**
   * admitOrQueue admits a request that has a session or may start one at an open gate, and sends others to the
   * room.
   */
  async #admitOrQueue(rm: RoomClient, state: State): Promise<Visit | Response> {
    const { client } = this.#context;
    const session = await this.#c.find(this.#request, rm, client);
    await this.#c.probe(rm, this.#context);
    if (!session && (await this.#canProve(rm))) return this.#toBind(this.#query);
    if (session) {
      this.#c.counts.passed++;
      return this.#visit(rm, session);
    }
    const free =
      rm.room.mode === "safety-net" ? await this.#c.pass(rm, state, client, agentOf(this.#request)) : undefined;
    if (free) return { ...this.#visit(rm, free), isNew: true };
    return rm.roomState.since === undefined ? this.#sendToRoom(state, rm) : this.fail(rm);
  }

  #visit(rm: RoomClient, session: Session): Visit {
    const ticket = isUnqueued(session) ? {} : { "X-Proofline-Ticket": uuidText(session.ticket) };
    return { request: this.#forSite({ ...ticket, "X-Proofline-Room": rm.name }), rm, session };
  }

  /** fail applies the room's failure mode. */
  async fail(rm: RoomClient): Promise<Visit | Response> {
    if (rm.failsOpen()) {
      this.#c.counts.failed_open++;
      return { request: this.#forSite() };
    }
    this.#c.counts.unavailable++;
    return rm.room.failure === "page" && isNavigation(this.#request)
      ? ownPage(this.#request, this.#c.page)
      : retryLater(this.#request);
  }

  /** redeemInURL redeems a pass in the URL; undefined: the check continues without it. */
  async #redeemInURL(
    state: State,
    decision: Decision,
    token: string,
    rest: string,
  ): Promise<Visit | Response | undefined> {
    const issuer = state.byURL.get(issuerOf(token));
    // A room can have several names: prefer this page's.
    const rm = !issuer || this.rm?.room.url === issuer.room.url ? this.rm : issuer;
    if (!rm || (decision.outcome === "bypass" && !issuer)) return undefined; // not for a room of these rules
    const before = await this.#c.find(this.#request, rm, this.#context.client);
    if (before && !isUnqueued(before)) return this.#redirectWithoutPass(rest);
    try {
      const session = await this.#c.redeem(rm, token, this.#context.client, this.#header("user-agent").join(""));
      this.#c.counts.redeemed++;
      if (before) this.#c.replace(rm, before); // count the visitor once
      return this.#redirectAfterPass(rm, rest, await this.#c.cookieOf(rm, session));
    } catch (error) {
      this.#query = rest; // neither the site nor the return URL gets the pass
      if (!(error instanceof Refusal)) throw error;
      if (decision.outcome === "bypass") return this.#redirectWithoutPass(rest);
      if (error.why === "unreachable") await this.#c.probe(rm, this.#context); // visitors cannot influence this request
      if (error.why === "unreachable" && before) return undefined; // an existing session is enough
      if (error.why === "unreachable" && this.rm?.roomState === rm.roomState) return this.fail(this.rm);
      // Another room must not trigger this one's failure mode.
      if (error.why !== "pass") return this.#c.retryPage(this.#request);
    }
    this.#c.counts.refused++;
    return undefined;
  }

  /** enter redeems the pass, if there is one, and redirects to the page at another host, or to a room. */
  async #enter(state: State): Promise<Response> {
    const { token, rest } = splitQuery(this.#query);
    if (token !== undefined) {
      const answer = await this.#redeemInURL(state, { outcome: "bypass", room: "", rule: "" }, token, rest);
      return answer instanceof Response ? answer : this.#redirectWithoutPass(rest);
    }
    const to = sitePage(state.site, this.#url, this.#url.searchParams.get("to") ?? "");
    const room = this.#url.searchParams.get("room");
    if (to && room !== null) return this.#waitAndEnter(state, room);
    if (to) return own(this.#request, 303, { Location: to.href });
    return own(
      this.#request,
      404,
      { "Content-Type": "text/plain; charset=utf-8" },
      "to must be a page on a host that the rules name\n",
    );
  }

  /** release ends the visitor's sessions. */
  async #release(state: State): Promise<Response> {
    const answer = own(this.#request, 204, {});
    for (const cookie of await this.#c.leave(this.#request, state, this.#context))
      answer.headers.append("Set-Cookie", cookie);
    return answer;
  }

  /** forSite returns the request for the site: with the connector's headers, and without forged ones. */
  #forSite(said: Record<string, string> = {}): Request {
    const headers = new Headers(this.#request.headers);
    for (const name of [...headers.keys()]) if (isClaim(name)) headers.delete(name);
    for (const [name, value] of Object.entries(said)) headers.set(name, value);
    const url = this.#url.origin + this.#target();
    const request = url === this.#request.url ? this.#request : new Request(url, this.#request);
    return new Request(request, { headers, redirect: "manual" });
  }

  /** canProve reports whether the request loads a page and has a session that is tied to a key. */
  async #canProve(rm: RoomClient): Promise<boolean> {
    if (rm.room.bind !== "browser" || !opensPage(this.#request)) return false;
    return (await this.#c.sessions(this.#request, rm)).some(({ key }) => key !== noKey);
  }

  /** redirectAfterPass redirects to the page requested; browsers with scripts via bindPath, to get a key. */
  #redirectAfterPass(rm: RoomClient, query: string, cookie: string): Response {
    const { headers, method } = this.#request;
    const isBrowser = headers.get("Sec-Fetch-Mode") === "navigate" && headers.get("Sec-Fetch-Dest") === "document";
    return rm.room.bind === "browser" && method === "GET" && isBrowser
      ? this.#toBind(query, cookie)
      : this.#redirectWithoutPass(query, cookie);
  }

  /** toBind redirects a browser to bindPath, and from there to the page requested. */
  #toBind(query: string, cookie?: string): Response {
    const to = localPath(this.#url.pathname) + (query ? `?${query}` : "");
    return own(this.#request, 303, {
      Location: `${bindPath}?to=${encodeQuery(to)}`,
      ...(cookie === undefined ? {} : { "Set-Cookie": cookie }),
    });
  }

  /** bind ties sessions to keys (POST), or sends the page that proves possession of keys. */
  async #bind(state: State): Promise<Response> {
    if (this.#request.method === "POST") return this.#bindSessions(state);
    const to = this.#url.searchParams.get("to") ?? "";
    if (!to || to !== localPath(to) || /[\0-\x1f\x7f]/.test(to))
      return own(
        this.#request,
        404,
        { "Content-Type": "text/plain; charset=utf-8" },
        "to must be a path of this site\n",
      );
    const visits: VisitToProve[] = [];
    for (const rm of state.rooms.values()) {
      const session =
        rm.room.bind === "browser"
          ? (await this.#c.sessions(this.#request, rm)).find((s) => !isUnqueued(s))
          : undefined;
      if (session)
        visits.push({
          name: rm.name,
          subject: await subjectOf(rm.room.url, session),
          room: rm.room.url,
          bound: session.key !== noKey,
        });
    }
    return bindPage(this.#request, to, this.#c.now(), visits);
  }

  /** bindSessions ties each session without a key to the key of its proof. */
  async #bindSessions(state: State): Promise<Response> {
    const answer = own(this.#request, 204, {});
    for (const rm of state.rooms.values()) {
      const session =
        rm.room.bind === "browser" ? await this.#c.find(this.#request, rm, this.#context.client) : undefined;
      if (!session || session.key !== noKey || isUnqueued(session)) continue;
      const key = await this.#c.prove(this.#request, rm, session, pageProofTTL);
      if (key !== undefined) answer.headers.append("Set-Cookie", await this.#c.cookieOf(rm, { ...session, key }));
    }
    return answer;
  }

  /** redirectWithoutPass redirects to the same URL without the pass. The location cannot be read as another host's. */
  #redirectWithoutPass(query: string, cookie?: string): Response {
    const location = localPath(this.#url.pathname) + (query ? `?${query}` : "");
    return own(this.#request, 303, { Location: location, ...(cookie === undefined ? {} : { "Set-Cookie": cookie }) });
  }

  /**
   * returnURL returns the URL to return to. The body of a POST is lost, so that visitors return to the page before
   * it.
   */
  #returnURL(): string {
    if (isNavigation(this.#request) && this.#request.method !== "POST") return this.#url.origin + this.#target();
    const referer = this.#request.headers.get("Referer") ?? "";
    const before = urlOf(referer);
    if (before?.origin !== this.#url.origin) return "";
    const { rest } = splitQuery(before.search.slice(1));
    return before.origin + before.pathname + (rest ? `?${rest}` : "");
  }

  /** sendToRoom sends a visitor to the room: browsers by redirect, scripts by JSON. */
  async #sendToRoom(state: State, rm: RoomClient): Promise<Response> {
    this.#c.counts.queued++;
    const page = this.#returnURL();
    const said = await this.#c.returns(rm, state, this.#context);
    const back = await this.#returnTarget(state, rm, page, said);
    const join = joinURL(rm.room.url, back);
    if (isNavigation(this.#request))
      return own(this.#request, this.#request.method === "POST" ? 303 : 302, { Location: join });
    const how = back.sig && back.to === page ? back.sig : said?.isRequired && this.#hasEnter(state) ? "enter" : "";
    const shared = allowSiteOrigin(state.site, this.#url, this.#request.headers.get("Origin"));
    const headers = { [queueHeader]: rm.room.url, ...(how && { [returnHeader]: how }), ...shared };
    return json(this.#request, 403, { error: "queue", join, room: rm.room.url }, headers);
  }

  /** returnTarget returns how to come back to a URL of this host, signed if a pass is redeemed there. */
  async #returnTarget(
    state: State,
    rm: RoomClient,
    to: string,
    said: ReturnSigning | undefined,
  ): Promise<ReturnTarget> {
    if (!said || !to) return { to, sig: "" };
    if (this.#isQueuedFor(state, rm, to)) return { to, sig: await signReturn(said.key, rm.room.url, to) };
    if (said.isRequired && this.#hasEnter(state)) return this.#returnByEnter(state, rm, to, said);
    if (said.isRequired && state.site.hosts.length === 0)
      this.#c.warn(
        "visitors can only return to the room's first target: the room requires signed return URLs, and none are signed until the rules name the site's hosts",
        { room: rm.name },
      );
    return { to, sig: "" };
  }

  /**
   * isQueuedFor reports whether the rules send visitors of a URL to the room. They must name hosts, because clients
   * can send any.
   */
  #isQueuedFor(state: State, rm: RoomClient, to: string): boolean {
    if (state.site.hosts.length === 0) return false;
    const { outcome, room } = decide(state.site, { ...this.#asked(), method: "GET", target: to }, this.#c.now());
    return outcome === "queue" && state.rooms.get(room)?.room.url === rm.room.url;
  }

  /** hasEnter reports whether enterPath accepts pages of this host. */
  #hasEnter(state: State): boolean {
    return sitePage(state.site, this.#url, this.#url.origin) !== undefined;
  }

  /** returnByEnter returns the way back via enterPath, which redeems the pass and removes it from the URL. */
  async #returnByEnter(
    state: State,
    rm: RoomClient,
    page: string,
    said: ReturnSigning | undefined,
  ): Promise<ReturnTarget> {
    const to = `${this.#url.origin}${enterPath}?to=${encodeQuery(page)}`;
    return { to, sig: said && this.#hasEnter(state) ? await signReturn(said.key, rm.room.url, to) : "" };
  }

  /** waitAndEnter redirects to a room, and back via enterPath, for a script that knows the room's URL. */
  async #waitAndEnter(state: State, room: string): Promise<Response> {
    const rm = state.byURL.get(room);
    if (!rm)
      return own(
        this.#request,
        404,
        { "Content-Type": "text/plain; charset=utf-8" },
        "room must be the URL of a room in the rules\n",
      );
    if (rm.room.mode === "closed") return this.#refuseClosed(state, rm);
    this.#c.counts.queued++;
    const said = await this.#c.returns(rm, state, this.#context);
    const back = await this.#returnByEnter(state, rm, this.#url.searchParams.get("to") ?? "", said);
    return own(this.#request, 303, { Location: joinURL(rm.room.url, back) });
  }

  /** refuseClosed refuses a visitor of a closed room. Sending them there would only bring them back here. */
  #refuseClosed(state: State, rm: RoomClient): Promise<Response> {
    this.#c.counts.blocked++;
    const shared = allowSiteOrigin(state.site, this.#url, this.#request.headers.get("Origin"));
    return refuse(this.#request, 403, { error: "closed", room: rm.room.url }, shared);
  }

  /** block answers a request that the rules refuse. */
  #block({ rule }: Decision): Promise<Response> {
    this.#c.counts.blocked++;
    if (rule === wrongHost)
      this.#c.warn("request blocked: its host is not in the hosts of the rules", { host: this.#host().slice(0, 100) });
    const [status, error] =
      rule === malformed
        ? ([400, "malformed"] as const)
        : rule === wrongHost
          ? ([421, "host"] as const)
          : ([403, "blocked"] as const);
    return refuse(this.#request, status, { error });
  }
}

/** isClaim reports whether only connectors may set a header. Some servers treat _ as -. */
function isClaim(name: string): boolean {
  return /^x[-_]proofline[-_]|^x[-_](original|rewrite)[-_]url$/i.test(name);
}

/** localPath returns a path that cannot be read as another host's address. */
function localPath(path: string): string {
  return "/" + path.replace(/^[/\\]+/, "");
}
