import { LogReader } from "../check/reader.ts";
import type { Source } from "../check/source.ts";
import { tileWidth } from "../check/tiles.ts";

/** How many bundles are requested at the same time. */
const ahead = 16;

/**
 * Streams the entries of a log of that size, bundle by bundle. Rejects with a
 * FormatError if a bundle is malformed, and with the source's error if it cannot be read.
 */
export async function* entriesOf(source: Source, size: bigint): AsyncGenerator<Uint8Array[]> {
  const bundles = (size + BigInt(tileWidth) - 1n) / BigInt(tileWidth);
  const waiting: Promise<Uint8Array[]>[] = [];
  for (let next = 0n; next < bundles || waiting.length > 0; ) {
    for (; next < bundles && waiting.length < ahead; next++) {
      const bundle = new LogReader(source, size).bundle(next); // a reader keeps what it has read
      bundle.catch(() => undefined); // it is awaited below, or an earlier one has failed
      waiting.push(bundle);
    }
    yield await waiting.shift()!;
  }
}
