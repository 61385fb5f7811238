import { type Entry, type EntryOf, type Kind, parseEntry } from "./entry.ts";
import { FormatError } from "./errors.ts";
import type { LogReader } from "./reader.ts";
import { tileWidth } from "./tiles.ts";

// Finds the entries of one window in a log. The log is not verified here: what is
// found must be proven afterwards, and what is not found may have been withheld.

/** How many bundles are read one after the other before a search gives up. */
const patience = 64n;

const width = BigInt(tileWidth);

/** Thrown when a search gives up before the end of the log. */
export class SearchError extends Error {
  override name = "SearchError";
}

/** The entry at an index; undefined if it is outside the log or malformed. */
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
 * follows soon, or came earlier if the schedule was amended. If windows are out
 * of order it finds the freeze of a later one, which shows the fault.
 */
export async function findFreeze(
  log: LogReader,
  window: bigint,
  arrival: bigint,
  end: number,
): Promise<bigint | undefined> {
  const start = await bisect(log, arrival + 1n, (entry) =>
    entry.kind === "assign" ? entry.window < window : timeOf(entry) < end,
  );
  const before = await findFreezeBefore(log, window, arrival, start);
  if (typeof before === "bigint") return before;
  const index = await scan(log, start, (entry) => entry.kind === "freeze" && entry.window >= window);
  if (index === undefined) return undefined;
  const found = (await peek(log, index)) as EntryOf<"freeze">;
  if (found.window > window && before === "perhaps") throw new SearchError(`no freeze found before entry ${start}`);
  return index;
}

/** Looks backwards for the freeze of a window, to an entry that it cannot be before. */
async function findFreezeBefore(
  log: LogReader,
  window: bigint,
  arrival: bigint,
  start: bigint,
): Promise<bigint | "none" | "perhaps"> {
  for (let index = start - 1n; index > arrival; index--) {
    if (index < start - patience * width) return "perhaps";
    const entry = await peek(log, index);
    if (entry?.kind === "freeze" && entry.window === window) return index;
    if (entry?.kind === "arrive" && entry.window <= window) break;
  }
  return "none";
}

/**
 * Finds the draw of a window after its freeze, or an entry that shows that it is
 * missing. With a beacon the draw follows its round, and many visitors may join
 * before: the search looks at the next entries, and then from the round's time on.
 */
export async function findDraw(
  log: LogReader,
  window: bigint,
  freeze: bigint,
  due?: number,
): Promise<bigint | undefined> {
  const matches = (entry: Entry): boolean => isOf(entry, ["draw", "assign"]) && entry.window >= window;
  if (due === undefined) return scan(log, freeze + 1n, matches);
  const near = (freeze / width + 2n) * width;
  for (let index = freeze + 1n; index < near && index < log.size; index++) {
    const entry = await peek(log, index);
    if (entry && matches(entry)) return index;
  }
  const start = await bisect(log, near, (entry) =>
    entry.kind === "assign" ? entry.window < window : timeOf(entry) < due,
  );
  const after = await scan(log, start, matches, 4n * patience); // a round may be late, and visitors keep joining
  const found = after === undefined ? undefined : await peek(log, after);
  if (!found || (found.kind === "draw" && found.window === window)) return after;
  // Places of earlier windows may be assigned after it, and hide it.
  for (let index = start - 1n; index >= near && index >= start - patience * width; index--) {
    const entry = await peek(log, index);
    if (entry?.kind === "draw" && entry.window === window) return index;
  }
  return after;
}

/** Finds the assignment of the first place of a window and lane after its draw, or one of a later window. */
export function findFirstPlace(
  log: LogReader,
  window: bigint,
  lane: string,
  draw: bigint,
): Promise<bigint | undefined> {
  const isFirst = (entry: EntryOf<"assign">) => (entry.window === window ? entry.lane === lane : entry.window > window);
  return scan(log, draw + 1n, (entry) => entry.kind === "assign" && isFirst(entry));
}

/** An assignment, and its position. */
interface Assigned {
  index: bigint;
  position: bigint;
}

/**
 * Finds the assignment of a place after an earlier one of the lane, or of a later place if it is missing. Places of a
 * lane are assigned in order. If everybody's follow one another, there are at least as many entries as places between
 * two of them; places that nobody has are not assigned, so it may be fewer.
 */
export async function findPlace(
  log: LogReader,
  lane: string,
  earlier: Assigned,
  position: bigint,
): Promise<bigint | undefined> {
  if (earlier.position >= position) return earlier.index;
  let low = earlier;
  let end = log.size; // the first assignment from here on is the later one, if there is any
  let later: Assigned | undefined;
  let gaveUp: SearchError | undefined;
  for (let isGuess = true; low.index + 1n < end; isGuess = !isGuess || !later) {
    const places = position - low.position;
    const entries = later ? (places * (later.index - low.index)) / (later.position - low.position) : places;
    const guess = low.index + (isGuess ? entries : (end - low.index) / 2n);
    const start = guess > low.index ? (guess < end ? guess : end - 1n) : low.index + 1n;
    try {
      const found = await nextAssigned(log, lane, start);
      if (found && found.position <= low.position) return found.index; // out of order
      if (found && found.position < position) low = found;
      else [end, later, gaveUp] = [start, found, undefined];
    } catch (failure) {
      if (!(failure instanceof SearchError)) throw failure;
      [end, later, gaveUp] = [start, undefined, failure];
    }
  }
  if (gaveUp) throw gaveUp;
  return later?.index;
}

async function nextAssigned(log: LogReader, lane: string, start: bigint): Promise<Assigned | undefined> {
  const index = await scan(log, start, (entry) => entry.kind === "assign" && entry.lane === lane);
  const entry = index === undefined ? undefined : await peek(log, index);
  return index === undefined || entry?.kind !== "assign" ? undefined : { index, position: entry.position };
}

function isOf<K extends Kind>(entry: Entry, kinds: readonly K[]): entry is EntryOf<K> {
  return (kinds as readonly Kind[]).includes(entry.kind);
}

/**
 * The bundle, from low on, at which to start the search: the first whose last entry no longer comes before the
 * target.
 */
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

/** The first index from start on whose entry matches; undefined: none up to the log's end. */
async function scan(
  log: LogReader,
  start: bigint,
  matches: (entry: Entry) => boolean,
  most = patience,
): Promise<bigint | undefined> {
  const stop = start + most * width;
  for (let index = start; index < log.size; index++) {
    if (index >= stop) throw new SearchError(`nothing found up to entry ${index}`);
    const entry = await peek(log, index);
    if (entry && matches(entry)) return index;
  }
  return undefined;
}

function timeOf(entry: Exclude<Entry, EntryOf<"assign">>): number {
  return entry.kind === "room" ? entry.created : entry.time;
}
