const size = 32; // bytes

/** Makes a visitor's secret, in base64url. */
export function makeSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(size));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Reads the fragment of an address, which browsers never send: the secret of a place, or a transfer code. */
export function fragmentOf(hash: string): { secret?: string; code?: string } {
  const secret = /^#k=([A-Za-z0-9_-]{43})$/.exec(hash)?.[1];
  const code = /^#t=([A-Za-z0-9_-]{22})$/.exec(hash)?.[1];
  return { ...(secret !== undefined && { secret }), ...(code !== undefined && { code }) };
}

/** The fragment that holds a secret. */
export function hashOf(secret: string): string {
  return `#k=${secret}`;
}

/** The state of the history entry that keeps a secret in the address: links from elsewhere cannot set it. */
export function stateOf(secret: string): { own: string } {
  return { own: secret };
}

/** Reports whether this browser itself put a secret into the address. */
export function isOwn(secret: string, state: unknown): boolean {
  return typeof state === "object" && state !== null && "own" in state && state.own === secret;
}

type Locks = Pick<LockManager, "request">;

/**
 * Runs an action in one tab at a time. Browsers have locks (navigator.locks) only on
 * secure pages, and refuse them where cookies are blocked: then the action runs
 * without one.
 */
export async function exclusive<T>(name: string, act: () => Promise<T>, locks: Locks | undefined): Promise<T> {
  let result: Promise<T> | undefined;
  try {
    await locks?.request(name, () => (result = act()));
  } catch (refusal) {
    if (result) throw refusal; // of the act itself
  }
  return result ?? act();
}
