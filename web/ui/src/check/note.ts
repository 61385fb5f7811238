import { sha256 } from "@noble/hashes/sha2.js";

import { fromBase64 } from "./base64.ts";
import { concat, equal, fromUtf8, utf8 } from "./bytes.ts";
import { verifyEd25519 } from "./ed25519.ts";
import { FormatError, SignatureError } from "./errors.ts";
import { fromHex } from "./hex.ts";

// https://c2sp.org/signed-note

const ed25519Type = 0x01;
const cosignatureType = 0x04;
const maxSignatures = 100;

/** The public key of a log or a witness, Ed25519. */
export interface Key {
  name: string;
  id: Uint8Array; // 4 bytes
  publicKey: Uint8Array; // 32 bytes
}

interface Signature {
  name: string;
  keyId: Uint8Array; // 4 bytes
  signature: Uint8Array;
}

/**
 * Reads a verifier key, `name+id+key`, and checks that its id is that of the key.
 * https://c2sp.org/signed-note#verifier-keys
 */
export function parseKey(vkey: string): Key {
  return parseTyped(vkey, ed25519Type);
}

/**
 * Reads the verifier key of a witness, for its cosignatures.
 * https://c2sp.org/tlog-cosignature
 */
export function parseWitnessKey(vkey: string): Key {
  return parseTyped(vkey, cosignatureType);
}

function parseTyped(vkey: string, type: number): Key {
  const match = /^([^+]*)\+([^+]*)\+(.*)$/s.exec(vkey);
  if (!match) throw new FormatError("not a verifier key");
  const name = parseName(match[1]!);
  const id = fromHex(match[2]!, 4);
  const typed = fromBase64(match[3]!);
  if (typed.length !== 33 || typed[0] !== type) throw new FormatError("not an Ed25519 key of that type");
  if (!equal(id, keyId(name, typed))) throw new FormatError("the id does not match the key");
  return { name, id, publicKey: typed.subarray(1) };
}

function keyId(name: string, typed: Uint8Array): Uint8Array {
  return sha256(concat(utf8(`${name}\n`), typed)).slice(0, 4);
}

/** Returns the name if it is a valid key name: not empty, no spaces, no plus, no control characters. */
export function parseName(name: string): string {
  if (!/^[^\p{White_Space}+\0-\x1f]+$/u.test(name)) throw new FormatError("not a key name");
  return name;
}

/**
 * Returns the text of a signed note. The key must have signed it, once;
 * signatures of other keys are ignored.
 */
export function openNote(note: Uint8Array, key: Key): string {
  const { text, signatures } = parseNote(note);
  const own = signatures.filter((s) => s.name === key.name && equal(s.keyId, key.id));
  if (own.length === 0) throw new SignatureError("not signed by the key");
  if (own.length > 1) throw new SignatureError("signed twice by the key");
  if (!verifyEd25519(key.publicKey, utf8(text), own[0]!.signature)) throw new SignatureError("wrong signature");
  return text;
}

/** Reads a signed note without looking at its signatures: text before the last empty line, signatures after. */
export function parseNote(note: Uint8Array): { text: string; signatures: Signature[] } {
  const whole = fromUtf8(note);
  if (/[\0-\x09\x0b-\x1f]/.test(whole)) throw new FormatError("control character in a note");
  const split = whole.lastIndexOf("\n\n");
  if (split < 0 || !whole.endsWith("\n")) throw new FormatError("not a signed note");
  const lines = whole
    .slice(split + 2)
    .split("\n")
    .slice(0, -1);
  if (lines.length === 0 || lines.length > maxSignatures) throw new FormatError("no signatures, or too many");
  return { text: whole.slice(0, split + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): Signature {
  const match = /^\u2014 ([^ ]*) ([^ ]*)$/u.exec(line);
  if (!match) throw new FormatError("not a signature line");
  const bytes = fromBase64(match[2]!);
  if (bytes.length < 5) throw new FormatError("signature too short");
  return { name: parseName(match[1]!), keyId: bytes.slice(0, 4), signature: bytes.subarray(4) };
}
