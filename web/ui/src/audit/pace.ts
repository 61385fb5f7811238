// RULES.md section 7. Credit counts 60,000ths of a call, times and
// durations milliseconds; every number stays below 2^53, so it is exact.

/** The credit that one call costs. */
const oneCall = 60_000;

/** The credit for calls. It stands still in a pause. */
export class Pace {
  readonly #starts: number;
  readonly #party: number; // seats of the largest party
  #perMinute: number;
  #credit = oneCall;
  #since: number;
  #paused = false;

  constructor(starts: number, perMinute: number, party = 1) {
    this.#starts = starts;
    this.#party = party;
    this.#since = starts;
    this.#perMinute = perMinute;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** The most credit that is stored: that of ten seconds, and at least that of the largest party. */
  #most(): number {
    return Math.max(10_000 * this.#perMinute, oneCall * this.#party);
  }

  /** Reports whether the credit at a time covers so many seats. */
  allows(time: number, calls: number): boolean {
    return this.#creditAt(time) >= oneCall * calls;
  }

  spend(time: number, calls: number): void {
    this.#reach(time);
    this.#credit -= oneCall * calls;
  }

  /** Gives back the credit of the seats of a called ticket that is skipped. */
  giveBack(time: number, seats = 1): void {
    this.#reach(time);
    this.#credit = Math.min(this.#credit, this.#most()) + oneCall * seats;
  }

  change(time: number, perMinute: number): void {
    this.#reach(time);
    this.#perMinute = perMinute;
    this.#credit = Math.min(this.#credit, this.#most());
  }

  pause(time: number): void {
    this.#reach(time);
    this.#since = time;
    this.#paused = true;
  }

  resume(time: number): void {
    this.#since = Math.max(time, this.#starts);
    this.#paused = false;
  }

  #creditAt(time: number): number {
    const limit = this.#most();
    if (this.#paused || time <= this.#since || this.#credit >= limit) return this.#credit;
    return Math.min(this.#credit + Math.min(time - this.#since, 60_000) * this.#perMinute, limit);
  }

  #reach(time: number): void {
    this.#credit = this.#creditAt(time);
    if (!this.#paused && time > this.#since) this.#since = time;
  }
}
