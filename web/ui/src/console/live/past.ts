import type { Figures, Minute, Series } from "./figures.ts";

/** The time span of the charts, in seconds. */
const kept = 15 * 60;

/** The data of charts: lists of equal length, the first in seconds since the Unix epoch. */
export interface Columns {
  at: number[];
  arrivals: (number | null)[];
  waiting: number[];
  admitted: (number | null)[];
  active: number[];
  target: number[]; // at that time; 0 during a pause
  limit: (number | null)[]; // at that time
}

/** Reports whether calls are stopped in a phase. */
const isStopped = (phase: string): boolean => phase === "paused" || phase === "claims-frozen";

/** The latest 15 minutes of a room. */
export class Past implements Columns {
  at: number[] = [];
  arrivals: (number | null)[] = [];
  waiting: number[] = [];
  admitted: (number | null)[] = [];
  active: number[] = [];
  target: number[] = [];
  limit: (number | null)[] = [];
  #arrivals: number | undefined; // total at the latest second

  /** Starts again with the server's data. */
  take(series: Series): void {
    this.at = [...series.at];
    this.arrivals = [...series.arrivals];
    this.waiting = [...series.waiting];
    this.admitted = [...series.admitted];
    this.active = [...series.active];
    this.target = [...series.target];
    this.limit = series.limit.map((most) => most || null);
    this.#arrivals = undefined;
  }

  /** Adds the figures of a second. */
  push(f: Figures): void {
    const at = Date.parse(f.at) / 1000;
    const last = this.at.at(-1) ?? -Infinity;
    if (!(at > last)) return;
    const passed = at - last;
    const rate = this.#arrivals === undefined ? f.arrival_rate : (f.arrivals - this.#arrivals) / passed;
    this.#arrivals = f.arrivals;
    this.at.push(at);
    this.arrivals.push(rate);
    this.waiting.push(f.waiting);
    this.admitted.push(f.outflow.minute);
    this.active.push(f.active);
    this.target.push(isStopped(f.phase) ? 0 : f.outflow.per_minute);
    this.limit.push(f.outflow.max_active || null);
    const old = this.at.findIndex((moment) => moment >= at - kept);
    if (old > 0)
      for (const list of [this.at, this.arrivals, this.waiting, this.admitted, this.active, this.target, this.limit])
        list.splice(0, old);
  }

  /** Sums up whole minutes, latest first. */
  minutes(): { at: number; arrivals: number; waiting: number; admitted: number | null; active: number }[] {
    const rows = new Map<number, { rates: number[]; last: number }>();
    this.at.forEach((at, i) => {
      const minute = Math.floor(at / 60) * 60;
      const row = rows.get(minute) ?? { rates: [], last: i };
      const rate = this.arrivals[i] ?? null;
      if (rate !== null) row.rates.push(rate);
      row.last = i;
      rows.set(minute, row);
    });
    return [...rows]
      .map(([at, { rates, last }]) => ({
        at,
        arrivals: rates.reduce((sum, rate) => sum + rate, 0) / Math.max(rates.length, 1),
        waiting: this.waiting[last] ?? 0,
        admitted: this.admitted[last] ?? null,
        active: this.active[last] ?? 0,
      }))
      .reverse();
  }
}

/** Converts a history into rates per minute. Between two steps nothing changed, or no server was running. */
export function ofMinutes(list: readonly Minute[]): Columns {
  const columns = { at: [], arrivals: [], waiting: [], admitted: [], active: [], target: [], limit: [] } as Columns;
  let before: Minute | undefined;
  for (const m of list) {
    const at = Date.parse(m.at) / 1000;
    const minutes = before ? (at - Date.parse(before.at) / 1000) / 60 : 1;
    columns.at.push(at);
    columns.arrivals.push((m.arrivals - (before?.arrivals ?? 0)) / minutes);
    columns.waiting.push(m.waiting);
    columns.admitted.push((m.admitted - (before?.admitted ?? 0)) / minutes);
    columns.active.push(m.active);
    columns.target.push(m.paused ? 0 : m.per_minute);
    columns.limit.push(m.max_active || null);
    before = m;
  }
  return columns;
}
