import { type Entry, type EntryOf, parseEntry } from "../check/entry.ts";

// RULES.md section 3 for the three most frequent kinds. The patterns allow so few
// digits that every number is in range, and match only canonical text;
// parseEntry reads all other entries.
const number = "(0|[1-9][0-9]{0,14})";
const small = "(0|[1-9][0-9]{0,8})";
const uuid = "([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})";
const lane = "([a-z0-9-]{1,32})";

const arriveLine = new RegExp(`^arrive ${number} ${number} ${small} ${uuid} ${lane}$`);
const assignLine = new RegExp(`^assign ${number} ${lane} ${number} ${uuid}$`);
const admitLine = new RegExp(`^admit ${number} ${uuid} ${uuid}$`);

/** Reads an entry like parseEntry, frequent kinds five times as fast. */
export function readEntry(encoded: Uint8Array): Entry {
  return encoded[0] === 0x61 ? (frequent(asLatin1(encoded)) ?? parseEntry(encoded)) : parseEntry(encoded); // "a"
}

function frequent(text: string): EntryOf<"arrive" | "assign" | "admit"> | undefined {
  let match = arriveLine.exec(text);
  if (match) {
    const [, time, window, seq, ticket, lane] = match;
    return {
      kind: "arrive",
      time: Number(time),
      window: BigInt(window!),
      seq: Number(seq),
      ticket: ticket!,
      lane: lane!,
      credentials: [],
      party: [],
    };
  }
  match = assignLine.exec(text);
  if (match) {
    const [, window, lane, position, ticket] = match;
    return { kind: "assign", window: BigInt(window!), lane: lane!, position: BigInt(position!), ticket: ticket! };
  }
  match = admitLine.exec(text);
  if (!match) return undefined;
  const [, time, ticket, pass] = match;
  return { kind: "admit", time: Number(time), ticket: ticket!, pass: pass! };
}

/** One character for each byte: bytes outside ASCII match no pattern. */
function asLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}
