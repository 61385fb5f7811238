// Counts of requests that would have needed a session if their room were on.
const minutes = 60;

export class Observed {
  all = 0; // since the isolate's start
  readonly #minutes = new Map<number, number>(); // of the last 60 minutes, by minute since 1970

  add(now: number): void {
    const minute = Math.floor(now / 60_000);
    this.all++;
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + 1);
  }

  /** hour returns the number of the last 60 minutes. */
  hour(now: number): number {
    const first = Math.floor(now / 60_000) - minutes + 1;
    for (const minute of this.#minutes.keys()) if (minute < first) this.#minutes.delete(minute);
    return [...this.#minutes.values()].reduce((a, b) => a + b, 0);
  }
}

const maxName = 50; // characters of a count's name
const maxCounts = 100; // in a report

/** withObserved adds the hourly counts of rooms in mode off to a report's counts. */
export function withObserved(
  counts: Record<string, number>,
  rooms: { name: string; room: { mode: string }; roomState: { observed: Observed } }[],
  now: number,
): Record<string, number> {
  const all = { ...counts };
  for (const { name, room, roomState } of rooms) {
    const count = `observed_hour_${name.replaceAll("-", "_")}`;
    if (room.mode === "off" && count.length <= maxName && Object.keys(all).length < maxCounts)
      all[count] = roomState.observed.hour(now);
  }
  return all;
}
