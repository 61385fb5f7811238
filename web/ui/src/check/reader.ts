import { FormatError } from "./errors.ts";
import {
  consistencyRanges,
  type Hash,
  hashSize,
  inclusionRanges,
  leafHash,
  type Range,
  rootOf,
  runRanges,
} from "./merkle.ts";
import type { Source } from "./source.ts";
import { splitBundle, type Tile, tileOf, tilePath, tileWidth } from "./tiles.ts";

const width = BigInt(tileWidth);

/**
 * Reads entries and proofs of a log at one size. Results are not verified: the
 * caller verifies the proofs against the root. Malformed files are a FormatError.
 */
export class LogReader {
  readonly size: bigint;
  readonly #source: Source;
  readonly #files = new Map<string, Promise<Uint8Array>>();
  readonly #bundles = new Map<bigint, Promise<Uint8Array[]>>();

  constructor(source: Source, size: bigint) {
    this.#source = source;
    this.size = size;
  }

  /** The text of an entry. */
  async entry(index: bigint): Promise<Uint8Array> {
    const bundle = await this.bundle(index / width);
    return bundle[Number(index % width)]!;
  }

  /** The entries of a bundle, as many as the log of this size has. */
  bundle(index: bigint): Promise<Uint8Array[]> {
    let bundle = this.#bundles.get(index);
    if (!bundle) {
      bundle = this.#readBundle(this.#tile(-1, index));
      this.#bundles.set(index, bundle);
    }
    return bundle;
  }

  /** The inclusion proof of an entry. */
  inclusion(index: bigint): Promise<Hash[]> {
    return this.#roots(inclusionRanges(index, this.size));
  }

  /** The proof that the log of an older size is the beginning of this one. */
  consistency(old: bigint): Promise<Hash[]> {
    return this.#roots(consistencyRanges(old, this.size));
  }

  /** The proof of a run of entries without gaps. */
  run(run: Range): Promise<Hash[]> {
    return this.#roots(runRanges(run, this.size));
  }

  #roots(ranges: Range[]): Promise<Hash[]> {
    return Promise.all(ranges.map(([from, to]) => this.#root(from, to)));
  }

  /** The root of a subtree of the tree. */
  async #root(from: bigint, to: bigint): Promise<Hash> {
    const height = (to - from).toString(2).length - 1;
    const middle = from + (1n << BigInt(height));
    if (middle < to) {
      return rootOf(await Promise.all([this.#root(from, middle), this.#root(middle, to)]));
    }
    // A complete subtree: 2^(height mod 8) neighbours in one tile.
    const level = Math.floor(height / 8);
    const first = from >> BigInt(8 * level);
    const hashes = await this.#hashes(level, first / width);
    const start = Number(first % width);
    return rootOf(hashes.slice(start, start + 2 ** (height % 8)));
  }

  /** The hashes of a tile. Leaf hashes are computed from the bundle if that has been read. */
  async #hashes(level: number, index: bigint): Promise<Hash[]> {
    const bundle = level === 0 && this.#bundles.get(index);
    if (bundle) return (await bundle).map(leafHash);
    const tile = this.#tile(level, index);
    const { bytes, whole } = await this.#read(tile);
    if (bytes.length !== hashSize * whole.width) throw new FormatError(`${tilePath(whole)} has ${bytes.length} bytes`);
    return Array.from({ length: tile.width }, (_, i) => bytes.subarray(hashSize * i, hashSize * (i + 1)));
  }

  async #readBundle(tile: Tile): Promise<Uint8Array[]> {
    const { bytes, whole } = await this.#read(tile);
    return splitBundle(bytes, whole.width).slice(0, tile.width);
  }

  #tile(level: number, index: bigint): Tile {
    const tile = tileOf(level, index, this.size);
    if (!tile) throw new RangeError(`no tile ${index} at level ${level} in a log of ${this.size}`);
    return tile;
  }

  /** Reads a tile, or the full one if a partial one is gone. */
  async #read(tile: Tile): Promise<{ bytes: Uint8Array; whole: Tile }> {
    try {
      return { bytes: await this.#file(tile), whole: tile };
    } catch (failure) {
      if (tile.width === tileWidth) throw failure;
      const whole = { ...tile, width: tileWidth };
      try {
        return { bytes: await this.#file(whole), whole };
      } catch {
        throw failure;
      }
    }
  }

  #file(tile: Tile): Promise<Uint8Array> {
    const path = tilePath(tile);
    let file = this.#files.get(path);
    if (!file) {
      file = this.#source.tile(path);
      this.#files.set(path, file);
    }
    return file;
  }
}
