// What would have waited for a room that is off, as package connector counts it.
const minutes = 60;

export class Observed {
  all = 0; // since this isolate began
  readonly #minutes = new Map<number, number>(); // of the last 60, since 1970

  add(now: number): void {
    const minute = Math.floor(now / 60_000);
    this.all++;
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1);
  }

  /** hour returns how many there were in the last 60 minutes. */
  hour(now: number): number {
    const first = Math.floor(now / 60_000) - minutes + 1;
    for (const minute of this.#minutes.keys()) if (minute < first) this.#minutes.delete(minute);
    return [...this.#minutes.values()].reduce((a, b) => a + b, 0);
  }
}

const maxName = 50; // of a count
const maxCounts = 100; // in a report

/** withObserved returns the counts of a report, with what rooms that are off would have had to do in the last hour. */
export function withObserved(counts: Record<string, number>, doors: { name: string; room: { mode: string }; link: { observed: Observed } }[], now: number): Record<string, number> {
  const all = { ...counts };
  for (const { name, room, link } of doors) {
    const count = `observed_hour_${name.replaceAll("-", "_")}`;
    if (room.mode === "off" && count.length <= maxName && Object.keys(all).length < maxCounts) all[count] = link.observed.hour(now);
  }
  return all;
}
