import { equal, fromUtf8, utf8 } from "./bytes.ts";
import { parseDecimal } from "./decimal.ts";
import { FormatError } from "./errors.ts";
import { fromHex, toHex } from "./hex.ts";
import {
  type Credential,
  formatCredential,
  formatMethod,
  type Method,
  parseCredential,
  parseMethod,
} from "./method.ts";
import { never, type WindowRule } from "./schedule.ts";
import { parseUuid8 } from "./uuid.ts";
import { proofSize, publicKeySize } from "./vrf.ts";

/** The longest entry in bytes, the limit of a bundle. */
export const maxEntrySize = 65535;

/** The only VRF suite that the rules allow. */
export const vrfSuite = "ECVRF-P256-SHA256-SSWU";

/** The word for a room without a beacon, and the only beacon scheme. */
const noBeacon = "none";
const beaconScheme = "bls-unchained-g1-rfc9380";

/** The most lanes that a room may have, and the most slots of its first window. */
export const maxLanes = 16;
export const maxSlots = 64;

/** Key id, time and signature of a witness. */
export const cosignatureSize = 76;

/** One kind of word in an entry. read accepts exactly what write makes. */
interface Field<T> {
  read(word: string): T;
  write(value: T): string;
}

function integer(limit: bigint): Field<bigint> {
  return { read: (word) => parseDecimal(word, limit), write: String };
}

function number(limit: number): Field<number> {
  return { read: (word) => Number(parseDecimal(word, BigInt(limit))), write: String };
}

function bytes(size: number): Field<Uint8Array> {
  return { read: (word) => fromHex(word, size), write: toHex };
}

function word(pattern: RegExp): Field<string> {
  const read = (text: string): string => {
    if (!pattern.test(text)) throw new FormatError("a word has an invalid character");
    return text;
  };
  return { read, write: (value) => value };
}

const time = number(never); // milliseconds since the Unix epoch
const closing: Field<number> = {
  read: (text) => (text === "never" ? never : time.read(text)),
  write: (value) => (value === never ? "never" : time.write(value)),
};
const millis = number(never + 1);
const uint32 = number(2 ** 32);
const uint63 = integer(1n << 63n);
const id: Field<string> = { read: parseUuid8, write: (value) => value };
const hash = bytes(32);
const token = word(/^[!-~]+$/); // printable ASCII without space
const lane = word(/^[a-z0-9-]{1,32}$/);
/** Numbers of lots, one for each slot and lane. */
const lots: Field<number[]> = {
  read: (text) => {
    const all = text.split(",");
    if (all.length > maxSlots * maxLanes) throw new FormatError(`${all.length} numbers of lots`);
    return all.map((one) => uint32.read(one));
  },
  write: (value) => value.map((one) => uint32.write(one)).join(","),
};
const reason = word(/^(?:no-show|left|too-large|revoked(?:-(?:bot|duplicate|fraud|request))?)$/);
const signed: Field<Uint8Array> = {
  read: (text) => {
    const read = fromHex(text);
    if (read.length < 1 || read.length > 256) throw new FormatError("not a beacon signature");
    return read;
  },
  write: toHex,
};
const signature: Field<Uint8Array> = {
  read: (text) => (text === "-" ? new Uint8Array(0) : signed.read(text)),
  write: (value) => (value.length === 0 ? "-" : toHex(value)),
};
/** Names of methods. */
const needs: Field<string[]> = {
  read: (text) => (text === "-" ? [] : token.read(text).split(",")),
  write: (value) => (value.length === 0 ? "-" : value.join(",")),
};
/** Three words. */
const credential: Field<Credential> = {
  read: (text) => {
    const [method = "", nullifier = "", evidence = ""] = text.split(" ");
    return parseCredential(method, nullifier, evidence);
  },
  write: formatCredential,
};

/** All remaining words, so many for each value: at least and at most so many values. */
function rest<T>(field: Field<T>, least = 0, most = Infinity, words = 1): Rest<T> {
  return { each: field, least, most, words };
}

interface Rest<T> {
  each: Field<T>;
  least: number;
  most: number;
  words: number;
}

/** An optional last word. */
function maybe(word: string): Maybe {
  return { maybe: word };
}

interface Maybe {
  maybe: string;
}

/** An optional last number, which is not 0. */
const seats: Rest<number> = {
  each: {
    read: (text) => {
      if (text === "0") throw new FormatError("no seats");
      return uint32.read(text);
    },
    write: uint32.write,
  },
  least: 0,
  most: 1,
  words: 1,
};

/** The entries of one line: kind, then these words in this order. */
const forms = {
  arrive: {
    time,
    window: uint63,
    seq: uint32,
    ticket: id,
    lane,
    credentials: rest(credential, 0, Infinity, 3),
    party: seats,
  },
  merit: { time, ticket: id, seq: uint32, credentials: rest(credential, 1, 1, 3) },
  freeze: { time, window: uint63, lots, size: uint63, root: hash, round: uint63, proof: bytes(proofSize) },
  draw: { time, window: uint63, signature, seed: hash, cosignatures: rest(bytes(cosignatureSize)) },
  assign: { window: uint63, lane, position: uint63, ticket: id },
  call: { time, positions: rest(uint63, 1, maxLanes) },
  extend: { time, ticket: id },
  restore: { time, ticket: id },
  admit: { time, ticket: id, pass: id },
  skip: { time, ticket: id, reason },
  beat: { time, signatures: rest(signed, 0, 1) },
  end: { time },
};

/** The words of an amendment after its time and the name of the change. */
const changes = {
  outflow: { perMinute: uint32, maxActive: uint32 },
  pause: { claims: maybe("claims") },
  resume: {},
  message: { message: hash },
  seats: { seats: uint32 },
  open: {},
  shut: {},
};

/** The words of a statement after its time and its subject. */
const subjects = {
  stock: { name: lane, count: uint63 },
  price: { name: lane, least: uint63, most: uint63, currency: word(/^[A-Z]{3}$/) },
  refused: { name: lane, from: time, until: time, count: uint63 },
  unguarded: { from: time, until: time, count: uint63 },
  auto: { name: lane },
};

// biome-ignore lint/suspicious/noExplicitAny: a form has fields of any types, and Values gives their types back
type Form = Readonly<Record<string, Field<any> | Rest<any> | Maybe>>;
type Values<F> = {
  [K in keyof F]: F[K] extends Field<infer T>
    ? T
    : F[K] extends Rest<infer T>
      ? T[]
      : F[K] extends Maybe
        ? boolean
        : never;
};
type Line = { [K in keyof typeof forms]: { kind: K } & Values<(typeof forms)[K]> }[keyof typeof forms];
type Change = { [C in keyof typeof changes]: { change: C } & Values<(typeof changes)[C]> }[keyof typeof changes];
type Statement = { [S in keyof typeof subjects]: { subject: S } & Values<(typeof subjects)[S]> }[keyof typeof subjects];

/** The first entry: what a room publishes about itself. */
export interface Room {
  kind: "room";
  created: number;
  origin: string;
  logKey: string; // verifier key of the log
  vrfKey: Uint8Array; // 33 bytes
  beacon: Beacon | undefined;
  /** Verifier keys of the witnesses that cosign freezes, and how many of them should. */
  witnesses: string[];
  quorum: number;
  methods: Method[];
  lanes: LaneRule[];
  lots: string[]; // methods that give a ticket one more lot
  party: number; // seats of an arrival at most; 0: one
  seats: number; // 0: any number
  opens: number;
  starts: number;
  closes: number; // or never
  windows: WindowRule[];
  slots: number; // milliseconds; 0: the first window has one slot, as all others
  notice: number; // milliseconds
  perMinute: number;
  maxActive: number;
  claim: number; // milliseconds
  extend: number; // milliseconds; 0: no extensions
  grace: number; // milliseconds
  session: number; // milliseconds
}

/** A lane of a policy. */
export interface LaneRule {
  name: string;
  weight: number; // share of the calls, relative to the other lanes
  needs: string[]; // methods that every arrival shows
}

/** Public randomness: a drand chain of the one scheme. */
export interface Beacon {
  id: string;
  key: Uint8Array; // 96 bytes, compressed point of G2
  genesis: bigint; // seconds since the Unix epoch
  period: number; // seconds
  group: Uint8Array; // 32 bytes
  margin: number; // milliseconds between a freeze and its round, at least
}

/** An amendment of a rule that may change. */
export type Amend = { kind: "amend"; time: number } & (
  | Change
  | { change: "windows"; closes: number; windows: WindowRule[] }
);

/** A statement of the operator, which changes nothing. */
export type Tell = { kind: "tell"; time: number } & Statement;

/** One entry of a transcript. */
export type Entry = Room | Line | Amend | Tell;
export type Kind = Entry["kind"];
export type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>;

/** Reads an entry in its canonical form, or throws a FormatError. */
export function parseEntry(encoded: Uint8Array): Entry {
  if (encoded.length > maxEntrySize) throw new FormatError("the entry is too long");
  const text = fromUtf8(encoded);
  const [kind = "", ...words] = text.split(" ");
  let entry: Entry;
  if (Object.hasOwn(forms, kind)) {
    entry = { kind, ...readWords(forms[kind as keyof typeof forms], words) } as Line;
  } else if (kind === "amend") {
    entry = parseAmend(words);
  } else if (kind === "tell") {
    entry = parseTell(words);
  } else {
    entry = parseRoom(text.split("\n"));
  }
  if (!equal(formatEntry(entry), encoded)) throw new FormatError("not in canonical form");
  return entry;
}

/** The canonical text of an entry, without a newline at its end. */
export function formatEntry(entry: Entry): Uint8Array {
  switch (entry.kind) {
    case "room":
      return utf8(formatRoom(entry));
    case "amend":
      return utf8(formatAmend(entry));
    case "tell":
      return utf8(
        ["tell", time.write(entry.time), entry.subject, ...writeWords(subjects[entry.subject], entry)].join(" "),
      );
    default:
      return utf8([entry.kind, ...writeWords(forms[entry.kind], entry)].join(" "));
  }
}

/** Reads the words from the left: an open field takes as many as it may. */
function readWords(form: Form, words: string[]): Record<string, unknown> {
  let at = 0;
  const next = (count: number): string => {
    at += count;
    if (at > words.length) throw new FormatError("a word is missing");
    return words.slice(at - count, at).join(" ");
  };
  const read = (field: Form[string]) => {
    const left = words.length - at;
    if ("maybe" in field) return left > 0 && next(1) === field.maybe;
    if (!("each" in field)) return field.read(next(1));
    const count = Math.max(field.least, Math.min(field.most, Math.floor(left / field.words)));
    return Array.from({ length: count }, () => field.each.read(next(field.words)));
  };
  const values = Object.entries(form).map(([name, field]) => [name, read(field)]);
  if (at < words.length) throw new FormatError("a word too many");
  return Object.fromEntries(values);
}

function writeWords(form: Form, values: object): string[] {
  return Object.entries(form).flatMap(([name, field]) => {
    const value = (values as Record<string, unknown>)[name];
    if ("each" in field) return (value as unknown[]).map((one) => field.each.write(one));
    if ("maybe" in field) return value ? [field.maybe] : [];
    return field.write(value);
  });
}

function parseAmend(words: string[]): Amend {
  const [at = "", change = "", ...rest] = words;
  const head = { kind: "amend", time: time.read(at) } as const;
  if (Object.hasOwn(changes, change)) {
    return { ...head, change, ...readWords(changes[change as keyof typeof changes], rest) } as Amend;
  }
  if (change !== "windows") throw new FormatError("unknown change");
  const windows: WindowRule[] = [];
  for (let i = 1; i < rest.length; i += 2) windows.push(readRule(rest.slice(i, i + 2)));
  return { ...head, change, closes: closing.read(rest[0] ?? ""), windows };
}

function formatAmend(entry: Amend): string {
  const head = ["amend", time.write(entry.time), entry.change];
  const rest =
    entry.change === "windows"
      ? [closing.write(entry.closes), ...entry.windows.flatMap(writeRule)]
      : writeWords(changes[entry.change], entry);
  return [...head, ...rest].join(" ");
}

function parseTell([at = "", subject = "", ...rest]: string[]): Tell {
  if (!Object.hasOwn(subjects, subject)) throw new FormatError("unknown subject");
  return {
    kind: "tell",
    time: time.read(at),
    subject,
    ...readWords(subjects[subject as keyof typeof subjects], rest),
  } as Tell;
}

const rule = { from: time, length: millis };

function readRule(words: string[]): WindowRule {
  return readWords(rule, words) as unknown as WindowRule;
}

function writeRule(windows: WindowRule): string[] {
  return writeWords(rule, windows);
}

function parseRoom(lines: string[]): Room {
  /** Takes the next line, which must begin with that word. */
  const take = (first: string): string[] => {
    const [word, ...words] = (lines.shift() ?? "").split(" ");
    if (word !== first) throw new FormatError(`a line "${first}" is missing`);
    return words;
  };
  const one = <T>(first: string, field: Field<T>): T => {
    const words = take(first);
    if (words.length !== 1) throw new FormatError(`a line "${first}" has one word`);
    return field.read(words[0]!);
  };
  const maybeOne = <T>(first: string, field: Field<T>): T | undefined =>
    lines[0]?.startsWith(`${first} `) ? one(first, field) : undefined;
  const list = <T>(first: string, read: (words: string[]) => T): T[] => {
    const all: T[] = [];
    while (lines[0]?.startsWith(`${first} `)) all.push(read(take(first)));
    return all;
  };
  one("room", word(/^1$/));
  const room: Room = {
    kind: "room",
    created: one("created", time),
    origin: one("origin", token),
    logKey: one("log", token),
    vrfKey: vrfKeyOf(take("vrf")),
    beacon: beaconOf(take("beacon")),
    quorum:
      list("witnesses", ([count = "", ...more]) => readWords({ count: uint32 }, [count, ...more]).count as number)[0] ??
      0,
    witnesses: list("witness", ([key = ""]) => token.read(key)),
    methods: list("method", (words) => parseMethod(words.join(" "))),
    lanes: list("lane", (words) => readWords(laneRule, words) as unknown as LaneRule),
    lots: maybeOne("lots", needs) ?? [],
    party: maybeOne("party", uint32) ?? 0,
    seats: maybeOne("seats", uint32) ?? 0,
    opens: one("opens", time),
    starts: one("starts", time),
    closes: one("closes", closing),
    windows: list("window", readRule),
    slots: maybeOne("slots", millis) ?? 0,
    notice: one("notice", millis),
    ...(readWords(changes.outflow, take("outflow")) as { perMinute: number; maxActive: number }),
    claim: one("claim", millis),
    extend: maybeOne("extend", millis) ?? 0,
    grace: one("grace", millis),
    session: one("session", millis),
  };
  if (lines.length > 0) throw new FormatError("text after the last line of a room entry");
  return room;
}

const laneRule = { name: lane, weight: uint32, needs };
const chain = { id: token, key: bytes(96), genesis: uint63, period: uint32, group: hash, margin: millis };

function beaconOf([scheme, ...words]: string[]): Beacon | undefined {
  if (scheme === noBeacon && words.length === 0) return undefined;
  if (scheme !== beaconScheme) throw new FormatError("unknown beacon scheme");
  return readWords(chain, words) as unknown as Beacon;
}

function vrfKeyOf([suite, key = ""]: string[]): Uint8Array {
  if (suite !== vrfSuite) throw new FormatError("unknown VRF suite");
  return fromHex(key, publicKeySize);
}

function formatRoom(room: Room): string {
  return [
    "room 1",
    `created ${time.write(room.created)}`,
    `origin ${room.origin}`,
    `log ${room.logKey}`,
    `vrf ${vrfSuite} ${toHex(room.vrfKey)}`,
    `beacon ${room.beacon ? [beaconScheme, ...writeWords(chain, room.beacon)].join(" ") : noBeacon}`,
    ...(room.witnesses.length > 0 ? [`witnesses ${uint32.write(room.quorum)}`] : []),
    ...room.witnesses.map((key) => `witness ${key}`),
    ...room.methods.map((method) => `method ${formatMethod(method)}`),
    ...room.lanes.map((rule) => `lane ${writeWords(laneRule, rule).join(" ")}`),
    ...(room.lots.length > 0 ? [`lots ${needs.write(room.lots)}`] : []),
    ...(room.party > 0 ? [`party ${uint32.write(room.party)}`] : []),
    ...(room.seats > 0 ? [`seats ${uint32.write(room.seats)}`] : []),
    `opens ${time.write(room.opens)}`,
    `starts ${time.write(room.starts)}`,
    `closes ${closing.write(room.closes)}`,
    ...room.windows.map((windows) => `window ${writeRule(windows).join(" ")}`),
    ...(room.slots > 0 ? [`slots ${millis.write(room.slots)}`] : []),
    `notice ${millis.write(room.notice)}`,
    `outflow ${writeWords(changes.outflow, room).join(" ")}`,
    `claim ${millis.write(room.claim)}`,
    ...(room.extend > 0 ? [`extend ${millis.write(room.extend)}`] : []),
    `grace ${millis.write(room.grace)}`,
    `session ${millis.write(room.session)}`,
  ].join("\n");
}
