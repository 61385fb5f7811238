// Figures in words, the same as the server's: see web/console/live.go.
import type { Figures } from "./figures.ts";

const dash = "\u2013";
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Writes a whole number in groups of three: 1,234,567. */
export function number(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Writes a figure with one decimal, without if it is large: 12.5, 1,235. */
export function decimal(n: number | null): string {
  if (n === null) return dash;
  return Math.abs(n) >= 99.95 ? number(Math.round(n)) : n.toFixed(1);
}

/** Writes a share of one: 12.5 %. */
export function percent(n: number | null): string {
  return n === null ? dash : `${(n * 100).toFixed(1)} %`;
}

export function bytesize(n: number): string {
  return `${number(Math.floor((n + 2 ** 19) / 2 ** 20))} MiB`;
}

/** Writes seconds as people say them: 0.4 s, 12 s, 3 min, 2.0 h. */
export function span(seconds: number | null): string {
  if (seconds === null) return dash;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 119.5) return `${seconds.toFixed(0)} s`;
  if (seconds < 2 * 3600 - 30) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Says when somebody who joins now is called. */
export function turn({ at, joining }: Pick<Figures, "at" | "joining">): string {
  if (!joining) return dash;
  const minutes = (moment: string): number => (Date.parse(moment) - Date.parse(at)) / 60_000;
  const earliest = minutes(joining.earliest);
  const latest = minutes(joining.latest);
  if (latest < 1) return "within a minute";
  const step = latest < 60 ? 1 : latest < 360 ? 5 : 15;
  const from = Math.max(Math.floor(earliest / step) * step, 0);
  const to = Math.ceil(latest / step) * step;
  if (latest >= 3000) return `in ${Math.floor(from / 60)} to ${Math.ceil(to / 60)} h`;
  return `in ${from} to ${to} min`;
}

/** Writes a value of the figures in the form that its place on the page names. */
export function say(value: unknown, form: string | undefined): string {
  const n = typeof value === "number" ? value : null;
  switch (form) {
    case "number":
      return n === null ? dash : number(n);
    case "decimal":
      return decimal(n);
    case "percent":
      return percent(n);
    case "span":
      return span(n === null ? null : n / 1000);
    case "millis":
      return n === null ? dash : `${n} ms`;
    case "limit":
      return n ? `at most ${number(n)}` : "no limit";
    case "answers":
      return value === true ? "answers" : "does not answer";
    case "moment":
      return typeof value === "string" ? clock.format(new Date(value)) : dash;
    case "turn":
      return turn(value as Figures);
  }
  return String(value ?? dash);
}

/** Says in a sentence how the room does, for those who listen to the page. */
export function spoken(f: Figures): string {
  const parts = [`${number(f.waiting)} waiting`, `${decimal(f.arrival_rate)} arrivals a second`];
  if (f.outflow.minute !== null) parts.push(`${decimal(f.outflow.minute)} admitted a minute of ${number(f.outflow.per_minute)}`);
  return `${f.phase}: ${parts.join(", ")}.`;
}
