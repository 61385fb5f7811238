// Clients that share a session, as this isolate sees them.

const maxHolders = 8; // clients of a session
const holderTTL = 600_000; // milliseconds that a client counts
const maxShared = 10_000; // remembered sessions

/** Holders counts the clients of sessions. A phone that moves has several. */
export class Holders {
  readonly #known = new Map<string, Map<string, number>>();

  /** add records that a client uses a session. False: too many other clients do. */
  add(pass: string, client: string, now: number): boolean {
    const clients = this.#known.get(pass) ?? new Map<string, number>();
    this.#known.delete(pass); // moves it to the end
    this.#known.set(pass, clients);
    if (this.#known.size > maxShared) this.#known.delete(this.#known.keys().next().value ?? "");
    if (!clients.has(client) && clients.size >= maxHolders) {
      for (const [other, seen] of clients) if (now - seen >= holderTTL) clients.delete(other);
      if (clients.size >= maxHolders) return false;
    }
    clients.set(client, now);
    return true;
  }
}
