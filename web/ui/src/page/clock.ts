/** Tells the server's time by what the server said it was, in milliseconds since the Unix epoch. */
export class ServerClock {
  readonly #local: () => number;
  #ahead = -Infinity;

  constructor(local: () => number = Date.now) {
    this.#local = local;
  }

  /**
   * Learns from an answer. Every answer is a little old when it is read, and
   * one from a cache is older, so the one that is furthest ahead is nearest.
   */
  hear(said: number): void {
    this.#ahead = Math.max(this.#ahead, said - this.#local());
  }

  now(): number {
    return this.#local() + (this.#ahead === -Infinity ? 0 : this.#ahead);
  }
}
