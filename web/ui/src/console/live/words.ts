// Figures in words, the same as the server's: see web/console/live/words.go.
import { clockTime } from "../times.ts";
import type { Figures, Span } from "./figures.ts";

const dash = "\u2013";

/** Writes a whole number in groups of three: 1,234,567. */
export function number(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Writes a number with one decimal, or none if it is large: 12.5, 1,235. */
export function decimal(n: number | null): string {
  if (n === null) return dash;
  return Math.abs(n) >= 99.95 ? number(Math.round(n)) : n.toFixed(1);
}

/** Writes a fraction as a percentage: 12.5 %. */
export function percent(n: number | null): string {
  return n === null ? dash : `${(n * 100).toFixed(1)} %`;
}

export function bytesize(n: number): string {
  return `${number(Math.floor((n + 2 ** 19) / 2 ** 20))} MiB`;
}

/** Writes seconds in one unit: 0.4 s, 12 s, 3 min, 2.0 h. */
export function span(seconds: number | null): string {
  if (seconds === null) return dash;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 119.5) return `${seconds.toFixed(0)} s`;
  if (seconds < 2 * 3600 - 30) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Describes when something is expected. The further away it is, the coarser the description. */
function spanAhead(at: string, { earliest, latest }: Span): string {
  const minutes = (moment: string): number => (Date.parse(moment) - Date.parse(at)) / 60_000;
  const last = minutes(latest);
  if (last < 1) return "within a minute";
  const step = last < 60 ? 1 : last < 360 ? 5 : 15;
  const from = Math.max(Math.floor(minutes(earliest) / step) * step, 0);
  const to = Math.ceil(last / step) * step;
  if (last >= 3000) return `in ${Math.floor(from / 60)} to ${Math.ceil(to / 60)} h`;
  return `in ${from} to ${to} min`;
}

/** Describes when a visitor who joins now will be called. */
export function turn({ at, joining }: Pick<Figures, "at" | "joining">): string {
  return joining ? spanAhead(at, joining) : dash;
}

/** Describes when everyone who is now in line will be called. */
export function emptied({ at, phase, waiting, next }: Pick<Figures, "at" | "phase" | "waiting" | "next">): string {
  if (waiting === 0) return "no line";
  if (phase === "paused" || phase === "claims-frozen") return "not while stopped";
  return next.called ? spanAhead(at, next.called) : dash;
}

/** Writes seconds until something as a countdown: 0:42, 12:05, 3:12:05, 2 d 03:00. */
export function until(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds <= 0) return "now";
  const two = (n: number): string => String(Math.floor(n)).padStart(2, "0");
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days} d ${two(hours)}:${two(minutes)}`;
  if (hours > 0) return `${hours}:${two(minutes)}:${two(seconds % 60)}`;
  return `${minutes}:${two(seconds % 60)}`;
}

/** The states of rooms in words, with the class of their badge. */
export const states: Record<string, readonly [word: string, className: string]> = {
  upcoming: ["not open yet", ""],
  open: ["open to join", "good"],
  serving: ["calling visitors", "good"],
  paused: ["calls paused", "warn"],
  "claims-frozen": ["claims frozen", "bad"],
  closed: ["closed to new visitors", "good"],
  ended: ["ended", ""],
};

/** Returns the level of the no-show rate: "", "warn" or "bad". */
export function noShowLevel({ recent, overall }: Figures["no_show_rate"]): string {
  const share = recent ?? overall ?? 0;
  return share < 0.25 ? "" : share < 0.5 ? "warn" : "bad";
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
      return typeof value === "string" ? clockTime(new Date(value)) : dash;
    case "turn":
      return turn(value as Figures);
    case "emptied":
      return emptied(value as Figures);
  }
  return String(value ?? dash);
}

/** Describes the state of the room in a sentence, for screen readers. */
export function spoken(f: Figures): string {
  const parts = [`${number(f.waiting)} in line`, `${decimal(f.arrival_rate)} arrivals per second`];
  if (f.outflow.minute !== null)
    parts.push(`${decimal(f.outflow.minute)} let in per minute of ${number(f.outflow.per_minute)}`);
  return `${states[f.phase]?.[0] ?? f.phase}: ${parts.join(", ")}.`;
}
