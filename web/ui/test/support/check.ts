import { gather, type Hints, type Visitor } from "../../src/check/evidence.ts";
import { checkPlace } from "../../src/check/place.ts";
import type { Source } from "../../src/check/source.ts";
import type { Line } from "../../src/check/verdicts.ts";

export async function check(source: Source, visitor: Visitor, hints?: Hints): Promise<Line[]> {
  return checkPlace(visitor, await gather(source, visitor, hints));
}

/** The four lines of an honest room. */
export const honest = ["included", "closed", "no-beacon", "exact"];

export function reasons(lines: Line[]): string[] {
  return lines.map(({ reason }) => reason);
}

export function reds(lines: Line[]): string[] {
  return lines.filter(({ status }) => status === "red").map(({ id }) => id);
}
