import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { httpSource, type Source } from "../check/source.ts";

const attempts = 3;

/** Reads a transcript in a directory (audit/FORMAT.md section 9), or below a URL. */
export function open(from: string): Source {
  if (!/^https?:\/\//.test(from)) {
    const read = (path: string): Promise<Uint8Array> => readFile(join(from, path));
    return { checkpoint: () => read("checkpoint"), tile: read };
  }
  const source = httpSource(from.replace(/\/*$/, "/"));
  return { checkpoint: () => again(() => source.checkpoint()), tile: (path) => again(() => source.tile(path)) };
}

/** Retries after one second and then after two. */
async function again<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (failure) {
      if (attempt === attempts) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 1000 * attempt));
    }
  }
}
