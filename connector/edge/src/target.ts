// How a request's address is read: see connector/rules/FORMAT.md. All strings are
// bytes (bytes.ts).
import { hasBadEscape, isUTF8, lower, utf8 } from "./bytes.ts";
import { backslash, compatible, encodedSlash, isTwice, spellingsOf } from "./spelling.ts";

// Maximum length of paths in bytes, and of those with rare readings.
const maxTarget = 8192;
const maxRare = 2048;

// Maximum number of readings of a path. Only attackers send paths with more.
const maxReadings = 64;

// Ways in which servers read paths differently.
const separators = 1; // \ and encoded slashes are slashes
const parameters = 2; // ; and everything after it is removed from a segment
const slashes = 4; // repeated slashes count as one
const dots = 8; // dot segments are resolved
const authority = 16; // two slashes at the beginning are followed by a host
const early = 32; // ; is handled before encoded slashes are decoded
const trimming = 64; // dots and spaces at the end of a segment are removed
const rareWays = authority | early | trimming;

/** Target is a parsed request target. */
export interface Target {
  host: string; // of a target in absolute form; else empty
  path: string;
  query: string;
}

/** cut splits a text at the first separator. */
export function cut(text: string, separator: string): [string, string] {
  const i = text.indexOf(separator);
  return i < 0 ? [text, ""] : [text.slice(0, i), text.slice(i + separator.length)];
}

/** splitTarget parses a request target; undefined: malformed. */
export function splitTarget(target: string): Target | undefined {
  const [path, query] = cut(target, "?");
  if (path.startsWith("/") || path === "*") return { host: "", path, query };
  const absolute = /^https?:\/\/([^/\\]+)([^]*)$/i.exec(path);
  return absolute ? { host: absolute[1] ?? "", path: absolute[2] || "/", query } : undefined;
}

/** urlOf parses a URL; undefined: malformed. Some platforms lack URL.canParse. */
export function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** isWeb reports whether a URL is http or https. */
export function isWeb({ protocol }: URL): boolean {
  return protocol === "https:" || protocol === "http:";
}

/** hostName returns a host without port and trailing dot, in lower case; undefined: malformed. */
export function hostName(host: string): string | undefined {
  const parts = /^(?:\[([^\]]*)\]|([^:]*))(?::[0-9]{0,5})?$/.exec(host);
  if (!parts || (parts[1] === undefined && host.startsWith("["))) return undefined;
  const name = lower((parts[1] ?? parts[2] ?? "").replace(/\.$/, ""));
  return /^[a-z0-9._:-]*$/.test(name) ? name : undefined;
}

/**
 * readings returns a path in every way that servers might read it, the most
 * thorough way first: in lower case, without a trailing slash; undefined: it is
 * malformed, or climbs above the root.
 */
export function readings(raw: string): string[] | undefined {
  const decoded = decodePath(raw);
  const spellings = decoded === undefined ? undefined : spellingsOf(decoded);
  if (decoded === undefined || !spellings || (raw.length > maxRare && isTwice(decoded))) return undefined;
  const list: string[] = [];
  for (const path of spellings) {
    const ways = waysOf(path);
    if ((ways & rareWays && raw.length > maxRare) || list.length + subsets(ways) > maxReadings) return undefined;
    const more = readingsOf(path, ways);
    if (!more) return undefined;
    list.push(...more);
  }
  return list;
}

/** subsets returns the number of subsets of a set of bits. */
function subsets(bits: number): number {
  return 2 ** bits.toString(2).replaceAll("0", "").length;
}

/** readingsOf returns one spelling of a path, read in every subset of ways; undefined: one climbs above the root. */
function readingsOf(path: string, ways: number): string[] | undefined {
  const often = ways & ~rareWays;
  const rare = ways & rareWays;
  const list: string[] = [];
  // Cache by way of splitting, because attackers send paths with many readings.
  const split = new Map<number, string[]>();
  for (let more = 0; ; more = (more - rare) & rare) {
    for (let way = often; ; way = (way - 1) & often) {
      const by = (way | more) & (separators | parameters | early | trimming);
      const segments = split.get(by) ?? segmentsOf(path, by);
      split.set(by, segments);
      const reading = read(segments, way | more);
      if (reading === undefined) return undefined;
      list.push(reading);
      if (way === 0) break;
    }
    if (more === rare) return list;
  }
}

/**
 * spelledOnce returns a pattern's path in the form that readings of requests are compared with; undefined: it has
 * several readings.
 */
export function spelledOnce(text: string): string | undefined {
  const decoded = decodePath(utf8(text).replaceAll("%", "%25").replaceAll(" ", "%20"));
  if (decoded === undefined) return undefined;
  const path = compatible(decoded);
  return waysOf(path) & ~trimming ? undefined : read(segmentsOf(path, 0), 0);
}

/** decodePath decodes percent-escapes once, and marks disguised separators. */
function decodePath(raw: string): string | undefined {
  if (raw === "*") raw = "/*";
  if (!/^[/\\]/.test(raw) || raw.length > maxTarget || hasBadEscape(raw) || /[\0-\x20\x7f#]/.test(raw))
    return undefined;
  const marked = raw.replace(/%2f/gi, "%01").replace(/%5c|\\/gi, "%02");
  if (/%(0[0-9a-f]|1[0-9a-f]|7f)/i.test(raw)) return undefined;
  const path = marked.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return isUTF8(path) ? lower(path) : undefined;
}

/** waysOf returns the ways in which a decoded path can be read differently. */
function waysOf(path: string): number {
  let ways = 0;
  if (path.includes(encodedSlash) || path.includes(backslash)) ways |= separators;
  if (path.includes(";")) ways |= parameters;
  if (ways === (separators | parameters)) ways |= early;
  const split = segmentsOf(path, separators | parameters);
  const segments = split.map(trimmed);
  if (segments.some((s, i) => s !== split[i])) ways |= trimming;
  if (withoutAuthority(split.slice(1)).length < split.length - 1) ways |= authority;
  if (segments.some((s, i) => s === "" && i > 0 && i < segments.length - 1)) ways |= slashes;
  if (segments.some((s) => s === "." || s === "..")) ways |= dots;
  return ways;
}

function segmentsOf(path: string, way: number): string[] {
  const text = (way & early ? withoutParameters(path.split("/")).join("/") : path)
    .replaceAll(encodedSlash, way & separators ? "/" : "%2f")
    .replaceAll(backslash, way & separators ? "/" : "\\");
  let list = text.split("/");
  if (way & parameters) list = withoutParameters(list);
  return way & trimming ? list.map(trimmed) : list;
}

/** trimmed returns a segment as Windows reads it: without trailing spaces and dots, unless it is a dot segment. */
function trimmed(segment: string): string {
  const s = segment.replace(/ +$/, "");
  return s === "." || s === ".." ? s : segment.replace(/[ .]+$/, "");
}

function withoutParameters(segments: string[]): string[] {
  return segments.map((s) => cut(s, ";")[0]);
}

/** withoutAuthority returns the segments after the first slash without a host, which follows a second one. */
function withoutAuthority(segments: string[]): string[] {
  if (segments[0] !== "") return segments;
  return segments.slice(segments.findIndex((s) => s !== "") + 1);
}

/** read returns a path of these segments in one way of reading it; undefined: it climbs above the root. */
function read(split: string[], way: number): string | undefined {
  let segments = split[0] === "" ? split.slice(1) : split;
  if (way & authority) segments = withoutAuthority(segments);
  const kept: string[] = [];
  for (const s of segments) {
    if (s === "" && way & slashes) continue;
    if (s === "." && way & dots) continue;
    if (s === ".." && way & dots) {
      if (kept.pop() === undefined) return undefined;
    } else kept.push(s);
  }
  while (kept.length > 0 && kept[kept.length - 1] === "") kept.pop();
  return "/" + kept.join("/");
}
