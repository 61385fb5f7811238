import { parseDecimal } from "./decimal.ts";
import { FormatError } from "./errors.ts";
import { maxSize } from "./merkle.ts";

// https://c2sp.org/tlog-tiles

/** Hashes in a full tile, entries in a full bundle. */
export const tileWidth = 256;

/** Names up to 256 consecutive hashes of the tree, or the bundle of as many entries. */
export interface Tile {
  level: number; // -1 entries, 0 leaf hashes, L the roots of full tiles of level L-1
  index: bigint; // of the tile in its level
  width: number; // 1 to 256; less than 256 is a partial tile
}

/** How many hashes the tree has at a tile level. */
export function hashesAt(level: number, size: bigint): bigint {
  return size >> BigInt(8 * Math.max(level, 0));
}

/** The tile of that index as a tree of that size has it; undefined if it has none. */
export function tileOf(level: number, index: bigint, size: bigint): Tile | undefined {
  const rest = hashesAt(level, size) - index * BigInt(tileWidth);
  if (rest <= 0n || index < 0n) return undefined;
  return { level, index, width: rest < BigInt(tileWidth) ? Number(rest) : tileWidth };
}

/** The path below the log's prefix, such as "tile/0/x001/067" or "tile/entries/000.p/12". */
export function tilePath({ level, index, width }: Tile): string {
  const groups = index
    .toString()
    .replace(/\B(?=(?:\d{3})+$)/g, ",")
    .split(",");
  groups[0] = groups[0]!.padStart(3, "0");
  const name = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
  const partial = width < tileWidth ? `.p/${width}` : "";
  return `tile/${level < 0 ? "entries" : level}/${name}${partial}`;
}

/** Reads what tilePath writes for a tile of a log of up to 2^60 entries. */
export function parseTilePath(path: string): Tile {
  const match = /^tile\/(entries|\d)\/((?:x\d{3}\/)*\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (!match) throw new FormatError("not the path of a tile");
  const level = match[1] === "entries" ? -1 : Number(match[1]);
  const index = parseDecimal(match[2]!.replace(/[x/]/g, "").replace(/^0+(?=\d)/, ""), maxSize);
  const width = match[3] === undefined ? tileWidth : Number(match[3]);
  const tile = { level, index, width };
  const most = tileOf(level, index, maxSize);
  const isOfSomeLog = most && width >= 1 && width <= most.width;
  if (!isOfSomeLog || tilePath(tile) !== path) throw new FormatError("not a tile of any log");
  return tile;
}

/** The entries of a bundle of that width: each a length of two bytes, big-endian, and its bytes. */
export function splitBundle(bundle: Uint8Array, width: number): Uint8Array[] {
  const entries: Uint8Array[] = [];
  let at = 0;
  for (let i = 0; i < width; i++) {
    const end = at + 2 + ((bundle[at]! << 8) | bundle[at + 1]!);
    if (at + 2 > bundle.length || end > bundle.length) throw new FormatError(`entry ${i} of a bundle is cut off`);
    entries.push(bundle.subarray(at + 2, end));
    at = end;
  }
  if (at !== bundle.length) throw new FormatError("a bundle goes on after its last entry");
  return entries;
}
