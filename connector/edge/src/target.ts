// How a request's address is read: see connector/rules/FORMAT.md. All texts are
// bytes (bytes.ts).
import { hasBadEscape, isUTF8, lower } from "./bytes.ts";

// How long paths may be, in bytes, and those that can be read in rare ways: they
// have up to 64 readings.
const maxTarget = 8192;
const maxRare = 2048;

// Ways in which origins read paths differently.
const separators = 1; // \ and encoded slashes are slashes
const parameters = 2; // what is behind ; in a segment is no part of it
const slashes = 4; // many slashes are one
const dots = 8; // dot segments are resolved
const authority = 16; // what follows two slashes at the beginning is a host
const early = 32; // what is behind ; goes before encoded slashes are decoded

// Bytes that stand for separators in disguise in a decoded path, which has no
// control characters else.
const encodedSlash = "\x01";
const backslash = "\x02";

/** Target is a request target in its parts. */
export interface Target {
  host: string; // of absolute form, else empty
  path: string;
  query: string;
}

/** cut splits a text at the first separator. */
export function cut(text: string, separator: string): [string, string] {
  const i = text.indexOf(separator);
  return i < 0 ? [text, ""] : [text.slice(0, i), text.slice(i + separator.length)];
}

/** splitTarget takes a request target apart; undefined: it is none. */
export function splitTarget(target: string): Target | undefined {
  const [path, query] = cut(target, "?");
  if (path.startsWith("/") || path === "*") return { host: "", path, query };
  const absolute = /^https?:\/\/([^/\\]+)([^]*)$/i.exec(path);
  return absolute ? { host: absolute[1] ?? "", path: absolute[2] || "/", query } : undefined;
}

/** urlOf reads a URL; undefined: it is none. Not all platforms have URL.canParse. */
export function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** isWeb tells whether a URL is one that browsers open pages by. */
export function isWeb({ protocol }: URL): boolean {
  return protocol === "https:" || protocol === "http:";
}

/** hostName returns a host without port and last dot, in lower case; undefined: it is no name. */
export function hostName(host: string): string | undefined {
  const parts = /^(?:\[([^\]]*)\]|([^:]*))(?::[0-9]{0,5})?$/.exec(host);
  if (!parts || (parts[1] === undefined && host.startsWith("["))) return undefined;
  const name = lower((parts[1] ?? parts[2] ?? "").replace(/\.$/, ""));
  return /^[a-z0-9._:-]*$/.test(name) ? name : undefined;
}

/**
 * readings returns a path in every way that origins might read it, the most
 * thorough way first: decoded once, in lower case, without a last slash;
 * undefined: nobody should read it at all.
 */
export function readings(raw: string): string[] | undefined {
  const path = decodePath(raw);
  if (path === undefined) return undefined;
  const ways = waysOf(path);
  const often = ways & ~(authority | early);
  const rare = ways & (authority | early);
  if (rare && raw.length > maxRare) return undefined;
  const list: string[] = [];
  const split = new Map<number, string[]>(); // by the ways of splitting it: anybody can send a path that there are many ways to read
  for (const more of [0, authority, early, authority | early]) {
    if (more & ~rare) continue;
    for (let way = often; ; way = (way - 1) & often) {
      const by = (way | more) & (separators | parameters | early);
      const segments = split.get(by) ?? segmentsOf(path, by);
      split.set(by, segments);
      list.push(read(segments, way | more));
      if (way === 0) break;
    }
  }
  return list;
}

/** decodePath decodes percent-escapes once, and marks separators in disguise. */
function decodePath(raw: string): string | undefined {
  if (raw === "*") raw = "/*";
  if (!/^[/\\]/.test(raw) || raw.length > maxTarget || hasBadEscape(raw) || /[\0-\x20\x7f#]/.test(raw)) return undefined;
  const marked = raw.replace(/%2f/gi, "%01").replace(/%5c|\\/gi, "%02");
  if (/%(0[0-9a-f]|1[0-9a-f]|7f)/i.test(raw)) return undefined;
  const path = marked.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return isUTF8(path) ? lower(path) : undefined;
}

/** waysOf tells in which ways a decoded path can be read differently. */
function waysOf(path: string): number {
  let ways = 0;
  if (path.includes(encodedSlash) || path.includes(backslash)) ways |= separators;
  if (path.includes(";")) ways |= parameters;
  if (ways === (separators | parameters)) ways |= early;
  const segments = segmentsOf(path, separators | parameters);
  if (withoutAuthority(segments.slice(1)).length < segments.length - 1) ways |= authority;
  if (segments.some((s, i) => s === "" && i > 0 && i < segments.length - 1)) ways |= slashes;
  if (segments.some((s) => s === "." || s === "..")) ways |= dots;
  return ways;
}

function segmentsOf(path: string, way: number): string[] {
  const text = (way & early ? withoutParameters(path.split("/")).join("/") : path)
    .replaceAll(encodedSlash, way & separators ? "/" : "%2f")
    .replaceAll(backslash, way & separators ? "/" : "\\");
  const list = text.split("/");
  return way & parameters ? withoutParameters(list) : list;
}

function withoutParameters(segments: string[]): string[] {
  return segments.map((s) => cut(s, ";")[0]);
}

/** withoutAuthority returns the segments behind the first slash without a host, which is behind the second. */
function withoutAuthority(segments: string[]): string[] {
  if (segments[0] !== "") return segments;
  return segments.slice(segments.findIndex((s) => s !== "") + 1);
}

/** read returns a path of these segments in one way of reading it. */
function read(split: string[], way: number): string {
  let segments = split[0] === "" ? split.slice(1) : split;
  if (way & authority) segments = withoutAuthority(segments);
  const kept: string[] = [];
  for (const s of segments) {
    if (s === "" && way & slashes) continue;
    if (s === "." && way & dots) continue;
    if (s === ".." && way & dots) kept.pop();
    else kept.push(s);
  }
  while (kept.length > 0 && kept[kept.length - 1] === "") kept.pop();
  return "/" + kept.join("/");
}
