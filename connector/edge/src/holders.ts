// Clients of sessions, as this isolate sees them.

const maxHolders = 8; // clients that may share a session
const holderLasts = 600_000; // milliseconds for which each counts
const maxShared = 10_000; // sessions whose clients are known

/** Holders counts the clients of sessions. A phone on its way has a few. */
export class Holders {
  readonly #known = new Map<string, Map<string, number>>();

  /** add notes that a client uses a session. False: there are too many others. */
  add(pass: string, client: string, now: number): boolean {
    const clients = this.#known.get(pass) ?? new Map<string, number>();
    this.#known.delete(pass); // the latest is the last
    this.#known.set(pass, clients);
    if (this.#known.size > maxShared) this.#known.delete(this.#known.keys().next().value ?? "");
    if (!clients.has(client) && clients.size >= maxHolders) {
      for (const [other, seen] of clients) if (now - seen >= holderLasts) clients.delete(other);
      if (clients.size >= maxHolders) return false;
    }
    clients.set(client, now);
    return true;
  }
}
