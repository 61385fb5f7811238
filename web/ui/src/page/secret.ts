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

/** Does something in one tab at a time, where the browser has locks (navigator.locks: secure pages only). */
export async function exclusive<T>(name: string, act: () => Promise<T>, locks: Locks | undefined): Promise<T> {
  if (!locks) return act();
  let result: T | undefined;
  await locks.request(name, async () => {
    result = await act();
  });
  return result as T;
}
