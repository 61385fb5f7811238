import type { Timers } from "../../src/page/poll.ts";

/** A clock that tests move. */
export class FakeTimers implements Timers {
  #now = 0;
  #next = 1;
  #waiting = new Map<number, { at: number; run: () => void }>();
  /** The result of random: 0.5 means no jitter. */
  chance = 0.5;

  now(): number {
    return this.#now;
  }

  random(): number {
    return this.chance;
  }

  set(run: () => void, ms: number): number {
    this.#waiting.set(this.#next, { at: this.#now + ms, run });
    return this.#next++;
  }

  clear(timer: number): void {
    this.#waiting.delete(timer);
  }

  /** The number of pending timers. */
  get pending(): number {
    return this.#waiting.size;
  }

  /** Lets time pass, and runs the timers that are due. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const due = [...this.#waiting].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#waiting.delete(due[0]);
      this.#now = Math.max(this.#now, due[1].at);
      due[1].run();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets all promises that can settle do so. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
