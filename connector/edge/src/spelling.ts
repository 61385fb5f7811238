// How servers may spell a path before they resolve it: see
// connector/rules/FORMAT.md. All strings are bytes (bytes.ts).
import { fromUTF8, isUTF8, lower, utf8 } from "./bytes.ts";

// Bytes that mark disguised separators in a decoded path, which has no other
// control characters.
export const encodedSlash = "\x01";
export const backslash = "\x02";

/**
 * spellingsOf returns the spellings that servers may use for a decoded path: as it
 * is, with compatibility characters replaced, and with accents removed; and the
 * same for the path decoded again, if that changes it. Undefined: the path is
 * malformed once it is decoded again.
 */
export function spellingsOf(path: string): string[] | undefined {
  if (!isTwice(path)) return folded(path);
  const again = decodeAgain(path);
  return again === undefined ? undefined : [...folded(path), ...folded(again)];
}

/** folded returns a path as it is, normalized, and without accents. */
function folded(path: string): string[] {
  return /^[\0-\x7f]*$/.test(path) ? [path] : [...new Set([path, compatible(path), plainLetters(path)])];
}

/**
 * compatible returns a path in the normalization form NFKC, which unifies full-width letters, ligatures and
 * composed letters.
 */
export function compatible(path: string): string {
  return marked(fromUTF8(path).normalize("NFKC"));
}

/** plainLetters returns a path in NFKD without accents, because some programs look pages up by title. */
function plainLetters(path: string): string {
  return marked(
    fromUTF8(path)
      .normalize("NFKD")
      .replace(/[\u0300-\u036f]/g, "")
      .replaceAll("\u0131", "i"),
  );
}

/**
 * marked returns a normalized path in lower case. Slashes that came from other characters are slashes; such
 * backslashes are marked.
 */
function marked(path: string): string {
  return lower(utf8(path).replaceAll("\\", backslash));
}

/** isTwice reports whether a decoded path still has a percent-escape. */
export function isTwice(path: string): boolean {
  return /%[0-9a-f]{2}/i.test(path);
}

/**
 * decodeAgain decodes the remaining percent-escapes of a decoded path, like a server behind a proxy that has
 * decoded once.
 */
function decodeAgain(path: string): string | undefined {
  if (/%(0[0-9a-f]|1[0-9a-f]|7f)/i.test(path)) return undefined;
  const again = path
    .replace(/%2f/gi, encodedSlash)
    .replace(/%5c/gi, backslash)
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return isUTF8(again) ? lower(again) : undefined;
}
