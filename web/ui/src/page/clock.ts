/** Estimates the server's time from its responses, in milliseconds since the Unix epoch. */
export class ServerClock {
  readonly #local: () => number;
  #ahead = -Infinity;

  constructor(local: () => number = Date.now) {
    this.#local = local;
  }

  /**
   * Adds the time in a response. Responses are a little old when they are read, and
   * from caches older still, so the one that is furthest ahead is the most exact.
   */
  observe(time: number): void {
    this.#ahead = Math.max(this.#ahead, time - this.#local());
  }

  now(): number {
    return this.#local() + (this.#ahead === -Infinity ? 0 : this.#ahead);
  }
}
