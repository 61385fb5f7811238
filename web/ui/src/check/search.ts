import { type Entry, type EntryOf, parseEntry } from "./entry.ts";
import { FormatError } from "./errors.ts";
import type { LogReader } from "./reader.ts";
import { tileWidth } from "./tiles.ts";

// Where in a log the entries of one window stand. What is found is a guess of
// an unproven log, to be proven afterwards; what is not found may be withheld.

/** How many bundles are read one after the other before a search gives up. */
const patience = 64n;

const width = BigInt(tileWidth);

/** Thrown when a search reads no further, though the log goes on. */
export class SearchError extends Error {
  override name = "SearchError";
}

/** The entry at an index; undefined if it is outside the log or no entry. */
export async function peek(log: LogReader, index: bigint): Promise<Entry | undefined> {
  if (index < 0n || index >= log.size) return undefined;
  const text = await log.entry(index);
  try {
    return parseEntry(text);
  } catch (failure) {
    if (failure instanceof FormatError) return undefined;
    throw failure;
  }
}

/**
 * Finds the freeze of a window that ends at some time, after an arrival in it.
 * Times never go backwards, so the moment is found by bisection; the freeze
 * follows soon, or was earlier if the window was amended.
 */
export async function findFreeze(
  log: LogReader,
  window: bigint,
  after: bigint,
  end: number,
): Promise<bigint | undefined> {
  const isFreeze = (entry: Entry | undefined): boolean => entry?.kind === "freeze" && entry.window === window;
  const start = await bisect(log, after + 1n, (entry) =>
    entry.kind === "assign" ? entry.window < window : timeOf(entry) < end,
  );
  const forward = await scan(log, start, isFreeze).catch(orGiveUp);
  if (typeof forward === "bigint") return forward;
  for (let index = start - 1n; index > after && index >= start - patience * width; index--) {
    if (isFreeze(await peek(log, index))) return index;
  }
  if (forward instanceof SearchError) throw forward;
  return undefined;
}

function orGiveUp(failure: unknown): SearchError {
  if (failure instanceof SearchError) return failure;
  throw failure;
}

/** Finds the draw of a window after its freeze. */
export function findDraw(log: LogReader, window: bigint, freeze: bigint): Promise<bigint | undefined> {
  return scan(log, freeze + 1n, (entry) => entry?.kind === "draw" && entry.window === window);
}

/** Finds the statement of a window's first place after its draw. */
export function findFirstPlace(log: LogReader, window: bigint, draw: bigint): Promise<bigint | undefined> {
  return scan(log, draw + 1n, (entry) => entry?.kind === "assign" && entry.window === window);
}

/**
 * Finds the statement of a place. Places are stated in order, so from one of
 * them to another there are at least as many entries as places.
 */
export async function findPlace(log: LogReader, from: bigint, position: bigint): Promise<bigint | undefined> {
  let start = from;
  for (;;) {
    const index = await scan(log, start, (entry) => entry?.kind === "assign");
    const entry = index === undefined ? undefined : await peek(log, index);
    if (index === undefined || entry?.kind !== "assign" || entry.position > position) return undefined;
    if (entry.position === position) return index;
    start = index + (position - entry.position);
  }
}

/** The first index of the first bundle, not before low, whose last entry no longer comes before what is sought. */
async function bisect(log: LogReader, low: bigint, before: (entry: Entry) => boolean): Promise<bigint> {
  let from = low / width;
  let to = (log.size + width - 1n) / width;
  while (from < to) {
    const middle = (from + to) / 2n;
    const bundle = await log.bundle(middle);
    const last = await peek(log, middle * width + BigInt(bundle.length - 1));
    if (last && before(last)) from = middle + 1n;
    else to = middle;
  }
  return from * width < low ? low : from * width;
}

/** The first index, not before start, whose entry matches; undefined if there is none to the log's end. */
async function scan(
  log: LogReader,
  start: bigint,
  matches: (entry: Entry | undefined) => boolean,
): Promise<bigint | undefined> {
  const stop = start + patience * width;
  for (let index = start; index < log.size; index++) {
    if (index >= stop) throw new SearchError(`nothing found up to entry ${index}`);
    if (matches(await peek(log, index))) return index;
  }
  return undefined;
}

function timeOf(entry: Exclude<Entry, EntryOf<"assign">>): number {
  return entry.kind === "room" ? entry.created : entry.time;
}
