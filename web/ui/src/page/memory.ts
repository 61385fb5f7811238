import type { Estimate } from "./expected.ts";

/** The data of a place that a browser stores. None of it is secret. */
export interface Kept {
  ticket: string;
  receipt?: string; // as given when joining
  vkey?: string; // the log's key, as first seen
  position?: number; // as first shown
  shown?: Estimate | undefined;
}

/** Stores the data of one room. Full or blocked storage is not an error. */
export class Memory {
  readonly #key: string;
  readonly #pendingKey: string;

  constructor(room: string) {
    this.#key = `proofline ${room}`;
    this.#pendingKey = `${this.#key} joining`;
  }

  /** Returns the data of a ticket. */
  of(ticket: string): Kept {
    const kept = attempt(() => JSON.parse(localStorage.getItem(this.#key) ?? "null") as Kept | null);
    return kept?.ticket === ticket ? kept : { ticket };
  }

  keep(ticket: string, more: Partial<Kept>): void {
    attempt(() => localStorage.setItem(this.#key, JSON.stringify({ ...this.of(ticket), ...more })));
  }

  /** The secret of a join of this tab that has had no response yet. */
  get pending(): string | undefined {
    return attempt(() => sessionStorage.getItem(this.#pendingKey)) ?? undefined;
  }

  set pending(secret: string | undefined) {
    attempt(() =>
      secret === undefined
        ? sessionStorage.removeItem(this.#pendingKey)
        : sessionStorage.setItem(this.#pendingKey, secret),
    );
  }
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
