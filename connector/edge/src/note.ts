// Signed notes (https://c2sp.org/signed-note), the format of signed rules: see
// "Signed rules" of connector/rules/FORMAT.md.
import { fromBytes, toBytes, utf8 } from "./bytes.ts";
import type { Ed25519 } from "./pass.ts";

/** NoteError is the reason why a note is refused. */
export class NoteError extends Error {}

/** SiteKey is a verifier key. */
export interface SiteKey {
  name: string;
  id: string; // four bytes at the beginning of a signature
  key: Uint8Array<ArrayBuffer>;
}

const ed25519Type = "\x01";

/** named matches a key's name, without + and Unicode spaces. */
const named = String.raw`([^+\x09-\x0d \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+)`;
const keyForm = new RegExp(String.raw`^${named}\+([0-9a-f]{8})\+(.+)$`);
const lineForm = new RegExp(String.raw`^\u2014 ${named} (\S+)$`);

/** fromBase64 decodes standard base64 with padding. */
function fromBase64(text: string): string | undefined {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? atob(text) : undefined;
}

/** parseSiteKey parses NAME+HASH+BASE64. It throws a NoteError. */
export async function parseSiteKey(text: string): Promise<SiteKey> {
  const parts = keyForm.exec(text);
  const [, name = "", hash = "", encoded = ""] = parts ?? [];
  const bytes = fromBase64(encoded);
  if (bytes?.length !== 33 || !bytes.startsWith(ed25519Type))
    throw new NoteError("the site key must be as the console shows it: NAME+HASH+BASE64");
  const sum = await crypto.subtle.digest("SHA-256", toBytes(`${utf8(name)}\n${bytes}`));
  const id = fromBytes(new Uint8Array(sum)).slice(0, 4);
  if (id !== hash.replace(/../g, (hex) => String.fromCharCode(parseInt(hex, 16))))
    throw new NoteError("the site key was changed: its hash is another");
  return { name, id, key: toBytes(bytes.slice(1)) };
}

/** open verifies a note and returns its text. It throws a NoteError. */
export async function open(note: string, { name, id, key }: SiteKey, ed25519: Ed25519): Promise<string> {
  const end = note.lastIndexOf("\n\n");
  const [text, marks] = [note.slice(0, end + 1), note.slice(end + 2)];
  if (end < 0 || !marks.endsWith("\n") || /[\0-\x09\x0b-\x1f]/.test(note))
    throw new NoteError("these rules are no signed note");
  const lines = marks
    .slice(0, -1)
    .split("\n")
    .map((line) => lineForm.exec(line));
  const all = lines.map((line) => ({ by: line?.[1] ?? "", bytes: fromBase64(line?.[2] ?? "") ?? "" }));
  if (all.length > 100 || !all.every(({ by, bytes }) => by !== "" && bytes.length >= 5))
    throw new NoteError("these rules are no signed note");
  const own = all.find(({ by, bytes }) => by === name && bytes.startsWith(id));
  if (!own) throw new NoteError(`these rules are not signed by ${name}`);
  if (own.bytes.length !== 68 || !(await ed25519(key, toBytes(own.bytes.slice(4)), toBytes(utf8(text)))))
    throw new NoteError(`these rules have a bad signature of ${name}`);
  return text;
}

/** SignedRules is the content of a note. */
export interface SignedRules {
  version: bigint;
  document: string;
}

export const firstLine = "proofline-rules/v1\n";

/** readRules parses the text of a note with a site's rules. It throws a NoteError. */
export function readRules(text: string, site: string): SignedRules {
  const parts = /^proofline-rules\/v1\n([^\n]*)\n([1-9][0-9]{0,18})\n([^]*)\n$/.exec(text);
  const [, name, version = "0", document = ""] = parts ?? [];
  if (!parts) throw new NoteError("this signed note has no rules of version 1");
  if (name !== site) throw new NoteError(`these rules are of the site ${JSON.stringify(name)}, not of ${site}`);
  if (BigInt(version) >= 1n << 63n) throw new NoteError("the version of these rules is too large");
  return { version: BigInt(version), document };
}
