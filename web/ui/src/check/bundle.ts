import { fromBase64, toBase64 } from "./base64.ts";
import { fromUtf8, utf8 } from "./bytes.ts";
import { parseHash } from "./checkpoint.ts";
import { parseDecimal } from "./decimal.ts";
import { FormatError } from "./errors.ts";
import type { Evidence, Proven, ProvenRun, Visitor } from "./evidence.ts";
import type { Hash } from "./merkle.ts";
import { ticketOf } from "./ticket.ts";
import { parseUuid8 } from "./uuid.ts";

// A visitor's proof in one file: everything that checkPlace needs to check
// the place again elsewhere. verifier/ticket/BUNDLE.md describes it.

/** The longest file in bytes. */
export const maxBundleSize = 16 * 2 ** 20;

const version = 1;
const maxNumber = 1n << 63n;

/** What a file holds. */
export interface Bundle {
  visitor: Visitor & { ticket: string };
  evidence: Evidence;
}

/** Returns the text of the file, which never holds a secret. Throws a FormatError if a file cannot hold the content. */
export function formatBundle(visitor: Visitor, evidence: Evidence): string {
  const { origin, ticket } = visitor;
  const file = {
    version,
    origin: wellFormed(origin),
    vkey: optional(visitor.vkey, wellFormed),
    ticket: parseUuid8(typeof ticket === "string" ? ticket : ticketOf(origin, ticket.secret)),
    receipt: formatBytes(visitor.receipt),
    shown: optional(visitor.shown, formatNumber),
    checkpoint: formatBytes(evidence.checkpoint),
    room: optional(evidence.room, formatProven),
    arrive: optional(evidence.arrive, formatProven),
    merits: evidence.merits.map(formatProven),
    growth: optional(evidence.growth, formatHashes),
    amends: evidence.amends.map(formatProven),
    freeze: optional(evidence.freeze, formatProven),
    frozen: optional(evidence.frozen, formatHashes),
    draw: optional(evidence.draw, formatProven),
    first_place: optional(evidence.firstPlace, formatRun),
    place: optional(evidence.place, formatProven),
    earlier: evidence.earlier?.map(formatProven),
    malformed: optional(evidence.malformed, wellFormed),
    gave_up: evidence.gaveUp ? true : undefined,
  };
  const text = `${JSON.stringify(file, null, 1)}\n`;
  if (text.length > maxBundleSize || utf8(text).length > maxBundleSize) throw new FormatError("the proof is too long");
  return text;
}

/**
 * Reads a file. Writing the content again must give the same bytes, so that each
 * content has one file: no duplicate or unknown members, nothing after the end.
 */
export function parseBundle(file: Uint8Array): Bundle {
  if (file.length > maxBundleSize) throw new FormatError(`longer than ${maxBundleSize} bytes`);
  const text = fromUtf8(file);
  const members = new Members(parseJson(text), "the proof");
  if (members.take("version") !== version) throw new FormatError(`not a proof of version ${version}`);
  const bundle = readBundle(members);
  members.end();
  if (formatBundle(bundle.visitor, bundle.evidence) !== text) throw new FormatError("not in canonical form");
  return bundle;
}

function readBundle(file: Members): Bundle {
  const vkey = file.optional("vkey", readText);
  const shown = file.optional("shown", readNumber);
  const visitor = {
    origin: file.read("origin", readText),
    ticket: parseUuid8(file.read("ticket", readText)),
    receipt: file.read("receipt", readBytes),
    ...(vkey !== undefined && { vkey }),
    ...(shown !== undefined && { shown }),
  };
  const evidence: Evidence = {
    checkpoint: file.read("checkpoint", readBytes),
    merits: file.read("merits", listOf(readProven)),
    amends: file.read("amends", listOf(readProven)),
  };
  const set = <K extends keyof Evidence>(key: K, name: string, read: Read<NonNullable<Evidence[K]>>): void => {
    const value = file.optional(name, read);
    if (value !== undefined) evidence[key] = value;
  };
  for (const name of ["room", "arrive", "freeze", "draw", "place"] as const) set(name, name, readProven);
  for (const name of ["growth", "frozen"] as const) set(name, name, listOf(readHash));
  set("firstPlace", "first_place", readRun);
  set("earlier", "earlier", listOf(readProven));
  set("malformed", "malformed", readText);
  set("gaveUp", "gave_up", readTrue);
  return { visitor, evidence };
}

function optional<T, U>(value: T | undefined, format: (value: T) => U): U | undefined {
  return value === undefined ? undefined : format(value);
}

/** Writes text as it is, and bytes that are not UTF-8, which a server may send, in base64. */
function formatBytes(bytes: Uint8Array): string | { base64: string } {
  try {
    return fromUtf8(bytes);
  } catch {
    return { base64: toBase64(bytes) };
  }
}

function formatNumber(value: bigint): string {
  return String(parseDecimal(String(value), maxNumber));
}

function formatHashes(hashes: readonly Hash[]): string[] {
  return hashes.map(toBase64);
}

function formatProven({ index, entry, path }: Proven): object {
  return { index: formatNumber(index), entry: formatBytes(entry), path: formatHashes(path) };
}

function formatRun({ first, entries, proof }: ProvenRun): object {
  return { first: formatNumber(first), entries: entries.map(formatBytes), proof: formatHashes(proof) };
}

/** Returns the text if it has no lone surrogate, which has no UTF-8 encoding. */
function wellFormed(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new FormatError("lone surrogate");
  return text;
}

/** Reads a JSON value; error messages use the name. */
type Read<T> = (json: unknown, name: string) => T;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new FormatError("not JSON");
  }
}

/** The members of an object; each can be taken once. */
class Members {
  readonly #name: string;
  readonly #rest: Map<string, unknown>;

  constructor(json: unknown, name: string) {
    if (typeof json !== "object" || json === null || Array.isArray(json))
      throw new FormatError(`${name} is not an object`);
    this.#name = name;
    this.#rest = new Map(Object.entries(json));
  }

  take(name: string): unknown {
    const value = this.#rest.get(name);
    this.#rest.delete(name);
    return value;
  }

  read<T>(name: string, read: Read<T>): T {
    return read(this.take(name), name);
  }

  optional<T>(name: string, read: Read<T>): T | undefined {
    return this.#rest.has(name) ? this.read(name, read) : undefined;
  }

  end(): void {
    for (const name of this.#rest.keys()) throw new FormatError(`${this.#name} has an unknown member "${name}"`);
  }
}

const readText: Read<string> = (json, name) => {
  if (typeof json !== "string") throw new FormatError(`${name} is not a text`);
  return json;
};

const readTrue: Read<true> = (json, name) => {
  if (json !== true) throw new FormatError(`${name} is not true`);
  return json;
};

const readNumber: Read<bigint> = (json, name) => parseDecimal(readText(json, name), maxNumber);

const readHash: Read<Hash> = (json, name) => parseHash(readText(json, name));

const readBytes: Read<Uint8Array> = (json, name) => {
  if (typeof json === "string") return utf8(json);
  const members = new Members(json, name);
  const bytes = fromBase64(members.read("base64", readText));
  members.end();
  return bytes;
};

function listOf<T>(read: Read<T>): Read<T[]> {
  return (json, name) => {
    if (!Array.isArray(json)) throw new FormatError(`${name} is not a list`);
    return json.map((one) => read(one, name));
  };
}

const readProven: Read<Proven> = (json, name) => {
  const members = new Members(json, name);
  const proven = {
    index: members.read("index", readNumber),
    entry: members.read("entry", readBytes),
    path: members.read("path", listOf(readHash)),
  };
  members.end();
  return proven;
};

const readRun: Read<ProvenRun> = (json, name) => {
  const members = new Members(json, name);
  const run = {
    first: members.read("first", readNumber),
    entries: members.read("entries", listOf(readBytes)),
    proof: members.read("proof", listOf(readHash)),
  };
  members.end();
  return run;
};
