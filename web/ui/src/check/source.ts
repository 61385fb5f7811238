/** Where a published log is read from. If a method rejects, nothing is known about the log. */
export interface Source {
  /** The latest signed checkpoint. */
  checkpoint(): Promise<Uint8Array>;
  /** The bytes at the path of a tile or entry bundle, such as "tile/0/000.p/12". */
  tile(path: string): Promise<Uint8Array>;
}

/** Reads a log below a prefix that ends in "/". Cookies are not sent. */
export function httpSource(prefix: string, fetcher: typeof fetch = fetch): Source {
  const get = async (path: string): Promise<Uint8Array> => {
    const answer = await fetcher(prefix + path, { credentials: "omit" });
    if (!answer.ok) throw new Error(`${path}: status ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
  return { checkpoint: () => get("checkpoint"), tile: get };
}
