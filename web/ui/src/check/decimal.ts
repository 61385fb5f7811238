import { FormatError } from "./errors.ts";

// No more digits than 2^64 has, so that no text makes a huge integer.
const canonical = /^(?:0|[1-9][0-9]{0,19})$/;

/** Reads ASCII digits without sign and leading zeroes, of a value below limit. */
export function parseDecimal(text: string, limit: bigint): bigint {
  const value = canonical.test(text) ? BigInt(text) : limit;
  if (value >= limit) throw new FormatError(`not a decimal below ${limit}`);
  return value;
}
