// The worker that solves a task. It never stops by itself: the page ends it to pause.
import { Search } from "./search.ts";

export interface Start {
  message: Uint8Array;
  bits: number;
  next: number; // the number to begin with
}

export interface Progress {
  next: number; // all smaller numbers were tried
  tries: number; // since the progress before
  took: number; // milliseconds
  found?: string; // 8 bytes in hex
}

/** Tries between two looks at the clock. */
const batch = 2048;
/** How often the page hears of progress, in milliseconds. */
const interval = 250;

addEventListener("message", ({ data: { message, bits, next } }: MessageEvent<Start>) => {
  const search = new Search(message, bits, next);
  for (;;) {
    const [from, began] = [search.next, performance.now()];
    let found: string | undefined;
    while (found === undefined && performance.now() - began < interval) found = search.run(batch);
    const progress: Progress = { next: search.next, tries: search.next - from, took: performance.now() - began };
    postMessage(found === undefined ? progress : { ...progress, found });
    if (found !== undefined) return;
  }
});
