/** What polling needs from the browser. */
export interface Timers {
  now(): number;
  random(): number; // from 0 to 1
  set(run: () => void, ms: number): number;
  clear(timer: number): void;
}

export const browserTimers: Timers = {
  now: Date.now,
  random: Math.random,
  set: (run, ms) => window.setTimeout(run, ms),
  clear: (timer) => window.clearTimeout(timer),
};

/** When to poll again after a success. */
export interface Next {
  after: number; // milliseconds
  jitter: number; // share of it by which it varies, either way
}

const firstBackoff = 2_000;
const maxBackoff = 60_000;

/** Returns how long to wait after a number of consecutive failures. */
export function backoff(failures: number): number {
  return Math.min(maxBackoff, firstBackoff * 2 ** Math.min(failures - 1, 10));
}

/**
 * Polls, one request at a time: at the interval of the last response, less often
 * while requests fail, and not while asleep.
 */
export class Poller {
  readonly #ask: () => Promise<Next>;
  readonly #timers: Timers;
  #timer: number | undefined;
  #asking = false;
  #asleep = false;
  #started = false;
  #failures = 0;
  #next: Next = { after: firstBackoff, jitter: 0.3 };
  #asked = -Infinity;

  constructor(ask: () => Promise<Next>, timers: Timers = browserTimers) {
    this.#ask = ask;
    this.#timers = timers;
  }

  get failures(): number {
    return this.#failures;
  }

  start(next: Next): void {
    this.#started = true;
    this.#next = next;
    this.#schedule(next.after);
  }

  stop(): void {
    this.#started = false;
    this.#cancel();
  }

  /** Stops polling until woken. */
  sleep(): void {
    this.#asleep = true;
    this.#cancel();
  }

  /** Polls at once, unless the last response is recent enough. */
  wake(): void {
    this.#asleep = false;
    const age = this.#timers.now() - this.#asked;
    if (age >= Math.min(this.#next.after, firstBackoff)) this.now();
    else this.#schedule(this.#next.after - age);
  }

  /** Polls at once, unless asleep. */
  now(): void {
    this.#cancel();
    if (this.#started && !this.#asking && !this.#asleep) void this.#run();
  }

  async #run(): Promise<void> {
    this.#asking = true;
    this.#asked = this.#timers.now();
    try {
      this.#next = await this.#ask();
      this.#failures = 0;
    } catch {
      this.#failures++;
    }
    this.#asking = false;
    this.#schedule(this.#failures > 0 ? backoff(this.#failures) : this.#next.after);
  }

  #schedule(after: number): void {
    this.#cancel();
    if (!this.#started || this.#asleep || this.#asking) return;
    const { jitter } = this.#next;
    const varied = after * (1 + jitter * (2 * this.#timers.random() - 1));
    this.#timer = this.#timers.set(() => this.now(), Math.max(0, varied));
  }

  #cancel(): void {
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }
}
