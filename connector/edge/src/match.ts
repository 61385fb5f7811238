// Compiled tests of a rule. A test in a document is parsed from unknown JSON.
import { type Address, contains, type Network, parseNetwork } from "./address.ts";
import { lower, utf8 } from "./bytes.ts";
import { spelledOnce } from "./target.ts";

/** Values are what is tested: texts in lower case, or an address. */
export interface Values {
  texts: string[];
  address?: Address | undefined;
}

export type Matcher = (v: Values) => boolean;
export type Kind = "text" | "path" | "network";

/** Report collects the problems of a document. */
export type Report = (field: string, detail: string) => void;

const maxDepth = 4; // of nested tests
const members = ["equals", "prefix", "suffix", "glob", "in", "any", "not"];
const never: Matcher = () => false;

/** Json is the value of a member. */
export type Json = Record<string, unknown>;

/** isObject reports whether a value is an object and not a list. */
export function isObject(v: unknown): v is Json {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** compileTest parses and compiles a test. */
export function compileTest(at: string, test: unknown, kind: Kind, report: Report, depth = 0): Matcher {
  if (depth === maxDepth) {
    report(at, `must not be nested deeper than ${maxDepth} tests`);
    return never;
  }
  const present = isObject(test) ? Object.keys(test).filter((name) => test[name] !== null) : [];
  const [name = "", more] = present;
  const value = isObject(test) ? test[name] : undefined;
  const isList = name === "in" || name === "any";
  const isFine = isList
    ? Array.isArray(value) && value.length > 0
    : name === "not"
      ? isObject(value)
      : typeof value === "string";
  const isKnown = isObject(test) && Object.keys(test).every((each) => members.includes(each));
  if (more !== undefined || !isKnown || !isFine) {
    report(at, "must have exactly one of equals, prefix, suffix, glob, in, any and not, which is not empty");
    return never;
  }
  if (name === "not") {
    const inner = compileTest(`${at}.not`, value, kind, report, depth + 1);
    return (v) => !inner(v);
  }
  if (name === "any") {
    const list = (value as unknown[]).map((each, i) => compileTest(`${at}.any[${i}]`, each, kind, report, depth + 1));
    return (v) => list.some((matcher) => matcher(v));
  }
  if ((name === "in") !== (kind === "network")) {
    report(at, 'must use "in" for networks, and only for networks');
    return never;
  }
  return name === "in" ? networks(at, value as unknown[], report) : textTest(at, name, value as string, kind, report);
}

function networks(at: string, list: unknown[], report: Report): Matcher {
  const found: Network[] = [];
  for (const [i, text] of list.entries()) {
    const network = typeof text === "string" ? parseNetwork(text) : undefined;
    if (network) found.push(network);
    else
      report(`${at}.in[${i}]`, "must be a network, such as 10.0.0.0/8 or 2001:db8::/32, with zeros behind its length");
  }
  return ({ address }) => address !== undefined && found.some((network) => contains(network, address));
}

/** textTest compiles a test of texts, one of which must match. */
function textTest(at: string, name: string, text: string, kind: Kind, report: Report): Matcher {
  const isPattern = kind === "path" && (name === "equals" || name === "prefix");
  const want = isPattern ? pathPattern(`${at}.${name}`, text, report) : lower(utf8(text));
  const parts = want.split("*");
  const test: (s: string) => boolean =
    name === "equals"
      ? (s) => s === want
      : name === "suffix"
        ? (s) => s.endsWith(want)
        : name === "glob"
          ? (s) => globs(s, parts)
          : isPattern
            ? (s) => isBelow(s, want)
            : (s) => s.startsWith(want);
  return ({ texts }) => texts.some(test);
}

/** pathPattern returns a path in the form that requests are compared with. */
function pathPattern(at: string, text: string, report: Report): string {
  const path = spelledOnce(text);
  if (path !== undefined && text.startsWith("/") && !/[?#]/.test(text)) return path;
  report(
    at,
    "must be a path that begins with /, decoded, without query, dot segments, double slashes, ; and backslash",
  );
  return text;
}

/** isBelow reports whether a path is equal to a folder's, or below it. */
function isBelow(path: string, folder: string): boolean {
  const rest = path.slice(folder.length);
  return path.startsWith(folder) && (rest === "" || rest[0] === "/" || folder === "/");
}

/** globs reports whether a text consists of the parts with any characters between them. */
export function globs(s: string, parts: string[]): boolean {
  const [first = "", last = ""] = [parts[0], parts[parts.length - 1]];
  if (parts.length === 1) return s === first;
  if (s.length < first.length + last.length || !s.startsWith(first) || !s.endsWith(last)) return false;
  let at = first.length;
  const end = s.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const i = s.indexOf(part, at);
    if (i < 0 || i + part.length > end) return false;
    at = i + part.length;
  }
  return true;
}

/** isWide reports whether a test of the path is not limited to certain folders. */
export function isWide(test: unknown): boolean {
  if (!isObject(test)) return true;
  const { equals, prefix, glob, any } = test;
  if (typeof equals === "string") return false;
  if (typeof prefix === "string") return prefix === "/";
  if (typeof glob === "string") return glob.split("/").every((segment) => segment === "" || segment.startsWith("*"));
  return Array.isArray(any) ? any.some(isWide) : true;
}
