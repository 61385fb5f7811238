// How many unqueued sessions a network began at this isolate within a minute, so
// that one network cannot shut a gate. Times are milliseconds since 1970.
const least = 10; // sessions a minute that any network may begin
const part = 5; // a network may take 1/5 of the node's part
const minute = 60_000;
const maxKnown = 60_000; // remembered starts; above it the oldest are dropped

/** networkLimit returns how many unqueued sessions a network may begin at a node within a minute. */
export function networkLimit({ perMinute, nodes }: { perMinute: number; nodes: number }): number {
  return Math.max(least, Math.floor(perMinute / (part * Math.max(1, nodes))));
}

/** NetworkStarts counts session starts of the last minute by network. */
export class NetworkStarts {
  #begun: { network: string; at: number }[] = []; // oldest first
  #gone = 0; // number of dropped entries at the front
  readonly #counts = new Map<string, number>();

  /**
   * count returns the number of starts of a network. Clients without an address have the empty network, and are not
   * counted.
   */
  count(network: string, now: number): number {
    let oldest = this.#begun[this.#gone];
    while (oldest && Math.abs(now - oldest.at) >= minute) {
      this.#drop(oldest.network); // expired, or begun before the clock was set back
      oldest = this.#begun[this.#gone];
    }
    return this.#counts.get(network) ?? 0;
  }

  add(network: string, now: number): void {
    if (network === "") return;
    const oldest = this.#begun[this.#gone];
    if (oldest && this.#begun.length - this.#gone >= maxKnown) this.#drop(oldest.network);
    this.#begun.push({ network, at: now });
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1);
  }

  /** drop removes the oldest start, which is of that network. */
  #drop(network: string): void {
    const left = (this.#counts.get(network) ?? 0) - 1;
    if (left > 0) this.#counts.set(network, left);
    else this.#counts.delete(network);
    this.#gone++;
    if (this.#gone * 2 < this.#begun.length) return;
    [this.#begun, this.#gone] = [this.#begun.slice(this.#gone), 0];
  }

  /** size returns the number of known networks. */
  get size(): number {
    return this.#counts.size;
  }
}
