// How origins may spell a path before they look it up: see
// connector/rules/FORMAT.md. All texts are bytes (bytes.ts).
import { fromUTF8, isUTF8, lower, utf8 } from "./bytes.ts";

// Bytes that stand for separators in disguise in a decoded path, which has no
// control characters else.
export const encodedSlash = "\x01";
export const backslash = "\x02";

/**
 * spellingsOf returns a decoded path as origins may spell it: as it is, with
 * compatible characters and then with accented letters as plain ones; and the
 * same of the path decoded again, if that changes it. Undefined: the path is
 * malformed once it is decoded again.
 */
export function spellingsOf(path: string): string[] | undefined {
  if (!isTwice(path)) return folded(path);
  const again = decodeAgain(path);
  return again === undefined ? undefined : [...folded(path), ...folded(again)];
}

/** folded returns a path with its letters as they are, compatible and plain. */
function folded(path: string): string[] {
  return /^[\0-\x7f]*$/.test(path) ? [path] : [...new Set([path, compatible(path), plainLetters(path)])];
}

/** compatible returns a path in the normalization form NFKC, which has one spelling for a letter of full width, a ligature and a composed letter. */
export function compatible(path: string): string {
  return marked(fromUTF8(path).normalize("NFKC"));
}

/** plainLetters returns a path in NFKD without the accents, as some programs look pages up by their titles. */
function plainLetters(path: string): string {
  return marked(fromUTF8(path).normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replaceAll("\u0131", "i"));
}

/** marked returns the bytes of a normalized path in lower case, with the backslashes marked that came out of other characters. Slashes that did are slashes. */
function marked(path: string): string {
  return lower(utf8(path).replaceAll("\\", backslash));
}

/** isTwice reports whether a decoded path still has a percent-escape. */
export function isTwice(path: string): boolean {
  return /%[0-9a-f]{2}/i.test(path);
}

/** decodeAgain decodes the percent-escapes that a decoded path still has, as a server does behind a proxy that has decoded once. */
function decodeAgain(path: string): string | undefined {
  if (/%(0[0-9a-f]|1[0-9a-f]|7f)/i.test(path)) return undefined;
  const again = path.replace(/%2f/gi, encodedSlash).replace(/%5c/gi, backslash).replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return isUTF8(again) ? lower(again) : undefined;
}
