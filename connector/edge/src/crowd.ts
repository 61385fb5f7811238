// How many free sessions one network began at this isolate within a minute, so
// that nobody shuts a gate for all from one. Times are milliseconds since 1970.
const minute = 60_000;
const least = 10; // that a network may begin in a minute, however few there are
const part = 5; // else one of so many of the node's part
const maxKnown = 60_000; // beginnings; before that many the oldest count no more

/** crowdOf returns how many free sessions of one network may begin at a node in a minute. */
export function crowdOf({ perMinute, nodes }: { perMinute: number; nodes: number }): number {
  return Math.max(least, Math.floor(perMinute / (part * Math.max(1, nodes))));
}

/** Crowd counts beginnings of the last minute by network. */
export class Crowd {
  #begun: { network: string; at: number }[] = []; // the oldest first
  #gone = 0; // how many of them, the first, count no more
  readonly #counts = new Map<string, number>();

  /** count returns how many began for a network. Clients whose address is not known are of none, which is empty. */
  count(network: string, now: number): number {
    for (let oldest; (oldest = this.#begun[this.#gone]) && Math.abs(now - oldest.at) >= minute; ) this.#drop(oldest.network); // or of a clock that was set back
    return this.#counts.get(network) ?? 0;
  }

  add(network: string, now: number): void {
    if (network === "") return;
    const oldest = this.#begun[this.#gone];
    if (oldest && this.#begun.length - this.#gone >= maxKnown) this.#drop(oldest.network);
    this.#begun.push({ network, at: now });
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1);
  }

  /** drop forgets the oldest, which is of that network. */
  #drop(network: string): void {
    const left = (this.#counts.get(network) ?? 0) - 1;
    if (left > 0) this.#counts.set(network, left);
    else this.#counts.delete(network);
    this.#gone++;
    if (this.#gone * 2 < this.#begun.length) return;
    [this.#begun, this.#gone] = [this.#begun.slice(this.#gone), 0];
  }

  /** size returns how many networks are known. */
  get size(): number {
    return this.#counts.size;
  }
}
