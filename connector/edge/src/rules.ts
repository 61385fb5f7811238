// Which requests of a site have to wait. It works like package connector/rules;
// connector/rules/FORMAT.md specifies both.
import shipped from "../../rules/defaults.json";
import { parseAddress } from "./address.ts";
import { decodeQuery, lower, utf8 } from "./bytes.ts";
import { duplicate } from "./json.ts";
import {
  compileTest,
  globs,
  isObject,
  isWide,
  type Json,
  type Kind,
  type Matcher,
  type Report,
  type Values,
} from "./match.ts";
import { cut, hostName, readings, splitTarget, urlOf } from "./target.ts";
import { parseTime } from "./time.ts";

export const maxSize = 1 << 20; // bytes of a document
const maxRules = 1000;
const maxRooms = 100;

/** Room is a waiting room in the rules. Times are milliseconds since 1970. */
export interface Room {
  url: string;
  origin: string;
  mode: "always" | "scheduled" | "safety-net" | "off" | "closed";
  from?: number | undefined;
  until?: number | undefined;
  failure: string;
  failOpenAfter?: number | undefined; // milliseconds; undefined: never
  bind: "browser" | "network" | "none";
}

/** Request is what is decided about. Strings are bytes (bytes.ts), header names are in lower case. */
export interface Request {
  method: string;
  host: string;
  target: string;
  header: (name: string) => string[];
  client: string;
}

export type Outcome = "bypass" | "queue" | "closed" | "block";

/** Decision is what happens to a request, and why. */
export interface Decision {
  outcome: Outcome;
  room: string;
  rule: string;
}

export const malformed = "default:malformed";
export const wrongHost = "default:hosts";

/** Site is the rules of a site. */
export interface Site {
  hosts: string[];
  rooms: Map<string, Room>;
  list: Rule[]; // rules and default rules, in the order in which they are tried
}

interface Rule {
  name: string;
  action: Outcome;
  room: string;
  isWide: boolean;
  tests: ((v: View) => boolean)[];
}

/** InvalidError lists the problems of a document. */
export class InvalidError extends Error {
  readonly problems: { field: string; detail: string }[];
  constructor(problems: { field: string; detail: string }[]) {
    super("invalid rules: " + problems.map((p) => `${p.field} ${p.detail}`.trim()).join("; "));
    this.problems = problems;
  }
}

/** parse parses a document. It throws an InvalidError. */
export function parse(text: string): Site {
  if (utf8(text).length > maxSize) throw new InvalidError([{ field: "", detail: "must be at most 1 MiB" }]);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new InvalidError([{ field: "", detail: `must be a JSON object: ${String(error)}` }]);
  }
  const twice = duplicate(text);
  if (twice !== undefined) throw new InvalidError([{ field: twice, detail: "must appear only once" }]);
  const checker = new Checker();
  const site = checker.site(document);
  if (checker.problems.length > 0) throw new InvalidError(checker.problems);
  return site;
}

const nameForm = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
// A name, or an IPv6 address; never a port.
const hostGlob = /^([a-z0-9*_-]([a-z0-9*._-]*[a-z0-9*_-])?|[0-9a-f:*]*:[0-9a-f:*]*[:*][0-9a-f:*.]*)$/;
const addressForm = /^(https|http):\/\/([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?(\/[^?#%\\]*)?$/i;
const loopback = /^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|\[::1\])$/;
const unit = { s: 1000, m: 60_000, h: 3_600_000 };

/** Checker validates a document, sets defaults, and compiles it. */
class Checker {
  readonly problems: { field: string; detail: string }[] = [];
  readonly report: Report = (field, detail) => this.problems.push({ field, detail });

  /** members returns an object without its null members, which count as missing. */
  members(at: string, v: unknown, names: string[]): Json {
    if (!isObject(v)) {
      this.report(at, "must be a JSON object");
      return {};
    }
    for (const name of Object.keys(v))
      if (!names.includes(name)) this.report(at ? `${at}.${name}` : name, "is no member");
    return Object.fromEntries(Object.entries(v).filter(([, each]) => each !== null));
  }

  /** texts checks that members are strings. */
  texts(at: string, v: Json, names: string[]): Record<string, string | undefined> {
    const out: Record<string, string | undefined> = {};
    for (const name of names) {
      const each = v[name];
      if (each === undefined) continue;
      if (typeof each === "string") out[name] = each;
      else this.report(`${at}.${name}`, "must be a text");
    }
    return out;
  }

  list(at: string, v: unknown): unknown[] {
    if (v === undefined) return [];
    if (Array.isArray(v)) return v;
    this.report(at, "must be a list");
    return [];
  }

  site(document: unknown): Site {
    const all = this.members("", document, ["version", "hosts", "rooms", "defaults", "rules"]);
    const hosts = this.list("hosts", all.hosts).map((h, i) => {
      if (typeof h === "string" && hostGlob.test(h)) return h;
      this.report(`hosts[${i}]`, "must be a host name in lower case without port; * matches any characters");
      return "";
    });
    if (all.version !== 1) this.report("version", "must be 1");
    const defaults = this.texts("", all, ["defaults"]).defaults || "on";
    if (defaults !== "on" && defaults !== "off") this.report("defaults", 'must be "on" or "off"');
    const site: Site = { hosts, rooms: new Map(), list: [] };
    const rooms = all.rooms === undefined ? {} : isObject(all.rooms) ? all.rooms : this.members("rooms", all.rooms, []);
    if (Object.keys(rooms).length > maxRooms) this.report("rooms", `must be at most ${maxRooms}`);
    for (const [name, room] of Object.entries(rooms)) site.rooms.set(name, this.room(name, room));
    const list = this.list("rules", all.rules);
    if (list.length > maxRules) this.report("rules", `must be at most ${maxRules}`);
    else this.rules(site, list, defaults === "on");
    return site;
  }

  room(name: string, v: unknown): Room {
    const at = `rooms.${name}`;
    if (!nameForm.test(name)) this.report(at, "must be named with a-z, 0-9 and -, at most 63 of them");
    const names = ["url", "origin", "mode", "from", "until", "failure", "bind"];
    const said = this.texts(at, this.members(at, v ?? {}, names), names);
    const { url = "" } = said;
    const [mode, bind, failure] = [said.mode || "always", said.bind || "browser", said.failure || "retry-page"];
    const room: Room = {
      url,
      origin: this.origin(at, url, said.origin),
      mode: mode as Room["mode"],
      failure,
      bind: bind as Room["bind"],
    };
    room.from = this.time(`${at}.from`, said.from);
    room.until = this.time(`${at}.until`, said.until);
    this.mode(at, room);
    room.failOpenAfter = failOpenAfter(failure);
    if (failure !== "retry-page" && failure !== "page" && room.failOpenAfter === undefined) {
      this.report(
        `${at}.failure`,
        'must be "retry-page", "page", or "fail-open-after" and a duration up to 24h, such as "fail-open-after 30s"',
      );
    }
    if (bind !== "browser" && bind !== "network" && bind !== "none")
      this.report(`${at}.bind`, "must be browser, network or none");
    return room;
  }

  /** origin validates a room's URL and returns the audience of its passes. */
  origin(at: string, url: string, said: string | undefined): string {
    const parts = addressForm.exec(url);
    const isSafe = parts !== null && (lower(parts[1] ?? "") === "https" || loopback.test(parts[2] ?? ""));
    if (!isSafe || url.endsWith("/") || utf8(url).length > 500 || !urlOf(url)) {
      this.report(
        `${at}.url`,
        "must be a room's URL, such as https://queue.example.com/r/sale, with https unless it is on this machine",
      );
      return said ?? "";
    }
    if (!said) return url.slice(url.indexOf("//") + 2);
    if (!/^[\x21-\x7e]{1,255}$/.test(said))
      this.report(`${at}.origin`, "must be the room's origin, such as queue.example.com/r/sale");
    return said;
  }

  time(at: string, text: string | undefined): number | undefined {
    if (text === undefined) return undefined;
    const time = parseTime(text, Math.ceil);
    if (time === undefined) this.report(at, "must be a time, such as 2027-01-01T10:00:00Z");
    return time;
  }

  mode(at: string, r: Room): void {
    if (!["always", "scheduled", "safety-net", "off", "closed"].includes(r.mode))
      this.report(`${at}.mode`, "must be always, scheduled, safety-net, off or closed");
    const hasTime = r.from !== undefined || r.until !== undefined;
    if (r.mode === "scheduled" && !hasTime) this.report(`${at}.mode`, "needs from, until, or both");
    else if (r.mode !== "scheduled" && hasTime)
      this.report(`${at}.mode`, "must be scheduled when from or until is there");
    else if (r.from !== undefined && r.until !== undefined && r.from >= r.until)
      this.report(`${at}.until`, "must be after from");
  }

  rules(site: Site, list: unknown[], hasDefaults: boolean): void {
    const seen = new Set<string>();
    let wide = list.length; // position of the default rules
    for (const [i, each] of list.entries()) {
      const rule = this.rule(site, `rules[${i}]`, each);
      if (rule.name === "" || utf8(rule.name).length > 100 || seen.has(rule.name) || rule.name.startsWith("default:")) {
        this.report(
          `rules[${i}].name`,
          "must be present and unique, have at most 100 bytes and not begin with default:",
        );
      }
      seen.add(rule.name);
      site.list.push(rule);
      if (rule.action === "queue" && rule.isWide && wide === list.length) wide = i;
    }
    if (hasDefaults) site.list.splice(wide, 0, ...shipped.map((r) => this.rule(site, r.name, r)));
  }

  rule(site: Site, at: string, v: unknown): Rule {
    const all = this.members(at, v, ["name", "when", "action"]);
    const { name = "", action = "" } = this.texts(at, all, ["name", "action"]);
    const when = this.members(`${at}.when`, all.when ?? {}, [
      "host",
      "path",
      "method",
      "user_agent",
      "network",
      "query",
      "header",
      "cookie",
    ]);
    const out: Rule = {
      name,
      action: "bypass",
      room: "",
      isWide: when.path === undefined || isWide(when.path),
      tests: this.tests(`${at}.when`, when),
    };
    if (action.startsWith("queue ") || action === "queue") {
      [out.action, out.room] = ["queue", action.slice(6)];
      if (!site.rooms.has(out.room)) this.report(`${at}.action`, "must name one of the rooms");
    } else if (action === "block") out.action = "block";
    else if (action !== "bypass") this.report(`${at}.action`, 'must be "queue ROOM", "bypass" or "block"');
    if (when.host !== undefined && site.hosts.length === 0) {
      this.report("hosts", `is required if a rule tests the host, as "${name}" does: clients can send any host`);
    }
    return out;
  }

  tests(at: string, when: Json): Rule["tests"] {
    const list: Rule["tests"] = [];
    const one = (name: string, kind: Kind, get: (v: View) => Values): void => {
      if (when[name] === undefined) return;
      const test = compileTest(`${at}.${name}`, when[name], kind, this.report);
      list.push((v) => test(get(v)));
    };
    one("path", "path", (v) => ({ texts: [v.path] }));
    one("host", "text", (v) => ({ texts: [v.host] }));
    one("method", "text", (v) => ({ texts: [v.method] }));
    one("network", "network", (v) => ({ texts: [], address: v.address }));
    one("user_agent", "text", (v) => headerValues(v, "user-agent"));
    for (const [name, test] of this.named(`${at}.query`, when.query)) list.push((v) => test(queryValues(v, name)));
    for (const [name, test] of this.named(`${at}.cookie`, when.cookie)) list.push((v) => test(cookieValues(v, name)));
    for (const [name, test] of this.named(`${at}.header`, when.header)) list.push((v) => test(headerValues(v, name)));
    return list;
  }

  named(at: string, v: unknown): [string, Matcher][] {
    if (v === undefined) return [];
    if (!isObject(v)) {
      this.report(at, "must be a JSON object");
      return [];
    }
    return Object.entries(v).map(([name, test]) => {
      if (!/^[\x21-\x7e]+$/.test(name)) this.report(at, "must have names of ASCII characters");
      return [lower(name), compileTest(`${at}.${name}`, test, "text", this.report)];
    });
  }
}

function failOpenAfter(failure: string): number | undefined {
  const parts = /^fail-open-after ([1-9][0-9]{0,5})([smh])$/.exec(failure);
  if (!parts) return undefined;
  const time = Number(parts[1]) * unit[parts[2] as keyof typeof unit];
  return time <= 24 * unit.h ? time : undefined;
}

/** View is a request in the form that rules test. */
interface View {
  request: Request;
  host: string;
  path: string; // one reading of it
  query: string;
  method: string;
  address: ReturnType<typeof parseAddress>;
}

const strictness: Outcome[] = ["bypass", "queue", "closed", "block"];

/** decide decides about a request at a time in milliseconds since 1970. */
export function decide(site: Site, request: Request, now: number): Decision {
  const target = splitTarget(request.target);
  const host = target && hostName(target.host || request.host);
  if (
    !target ||
    host === undefined ||
    request.method === "CONNECT" ||
    (target.path === "*" && request.method !== "OPTIONS")
  ) {
    return { outcome: "block", room: "", rule: malformed };
  }
  if (site.hosts.length > 0 && !site.hosts.some((glob) => globs(host, glob.split("*")))) {
    return { outcome: "block", room: "", rule: wrongHost };
  }
  const paths = readings(target.path);
  if (!paths) return { outcome: "block", room: "", rule: malformed };
  const view: View = {
    request,
    host,
    path: "",
    query: target.query,
    method: lower(request.method),
    address: parseAddress(request.client),
  };
  // Waiting at a gate that may be open is less strict than waiting in any case.
  const rank = ({ outcome, room }: Decision): number =>
    2 * strictness.indexOf(outcome) + (outcome === "queue" && site.rooms.get(room)?.mode !== "safety-net" ? 1 : 0);
  return paths.map((path) => first(site, { ...view, path }, now)).reduce((a, b) => (rank(b) > rank(a) ? b : a));
}

/** first returns the decision of the first matching rule. */
function first(site: Site, view: View, now: number): Decision {
  const rule = site.list.find(({ tests }) => tests.every((test) => test(view)));
  if (!rule) return { outcome: "bypass", room: "", rule: "" };
  const room = site.rooms.get(rule.room);
  return {
    outcome: rule.action === "queue" && room ? outcomeOf(room, now) : rule.action,
    room: rule.room,
    rule: rule.name,
  };
}

/** outcomeOf returns what a room's mode means for requests now. */
function outcomeOf(r: Room, now: number): Outcome {
  if (r.mode === "off" || (r.from !== undefined && now < r.from) || (r.until !== undefined && now >= r.until))
    return "bypass";
  return r.mode === "closed" ? "closed" : "queue";
}

function headerValues(v: View, name: string): Values {
  return { texts: v.request.header(name).map(lower) };
}

/** queryValues returns all values of a parameter. */
function queryValues(v: View, name: string): Values {
  const pairs = v.query.split("&").map((part) => cut(part, "=").map((text) => lower(decodeQuery(text))));
  return { texts: pairs.filter(([key]) => key === name).map(([, value = ""]) => value) };
}

/** cookieValues returns all values of a cookie. */
function cookieValues(v: View, name: string): Values {
  const parts = v.request
    .header("cookie")
    .flatMap((line) => line.split(";"))
    .map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ""));
  const found = parts.filter((part) => part.includes("=") && lower(cut(part, "=")[0]) === name);
  return { texts: found.map((part) => lower(cut(part, "=")[1].replace(/^"+|"+$/g, ""))) };
}
