// A copy of the latest rules of a URL, for isolates that start while it does not
// respond.

/** Keep stores a text that outlives isolates. It is verified like a received one. */
export interface Keep {
  /** get returns the stored text; undefined: none. */
  get: () => Promise<string | undefined>;
  put: (text: string) => Promise<void>;
}

const year = 31_536_000; // seconds

/**
 * inCache stores a text in the data center's cache for Workers. The key must be an
 * address of the Worker's own host; no client can request this one, because connectors
 * answer all paths that begin like it.
 */
export function inCache(origin: string, rulesURL: string): Keep {
  const at = `${origin}/.proofline/rules?${encodeURIComponent(rulesURL)}`;
  const cache = (): Promise<Cache> => caches.open("proofline");
  return {
    get: async () => (await (await cache()).match(at))?.text(),
    put: async (text) =>
      (await cache()).put(at, new Response(text, { headers: { "Cache-Control": `max-age=${year}` } })),
  };
}
