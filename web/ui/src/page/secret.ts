const size = 32; // bytes

/** Makes a visitor's secret, in base64url. */
export function makeSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(size));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The secret in the fragment of an address, which browsers never send. */
export function secretOf(hash: string): string | undefined {
  return /^#k=([A-Za-z0-9_-]{43})$/.exec(hash)?.[1];
}

/** The fragment that holds a secret. */
export function hashOf(secret: string): string {
  return `#k=${secret}`;
}

type Locks = Pick<LockManager, "request">;

/**
 * Does something in one tab at a time. Browsers have locks (navigator.locks) on
 * secure pages only, and refuse them where cookies are blocked: then it is
 * done all the same.
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
