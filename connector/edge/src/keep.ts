// The latest rules of a URL, kept for isolates that begin while it does not
// answer.

/** Keep has a text outlive isolates. What is kept is checked like what was just received. */
export interface Keep {
  /** get returns the text that was put last; undefined: there is none. */
  get: () => Promise<string | undefined>;
  put: (text: string) => Promise<void>;
}

const year = 31_536_000; // seconds

/**
 * inCache keeps a text in the cache that Workers have in each data center. The
 * address is one of the Worker's own host, as Cloudflare wants it, and nobody
 * gets there: connectors answer what begins like this themselves.
 */
export function inCache(origin: string, rulesURL: string): Keep {
  const at = `${origin}/.proofline/rules?${encodeURIComponent(rulesURL)}`;
  const cache = (): Promise<Cache> => caches.open("proofline");
  return {
    get: async () => (await (await cache()).match(at))?.text(),
    put: async (text) => (await cache()).put(at, new Response(text, { headers: { "Cache-Control": `max-age=${year}` } })),
  };
}
