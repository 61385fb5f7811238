// The arithmetic of the editor's timeline: the positions of windows, and what moves together. It does not use
// the DOM.
import { never, Schedule, type WindowRule } from "../check/schedule.ts";
import { writeLength, writeNumber } from "./lengths.ts";
import { isPlan, type Plan } from "./outline.ts";

/** The shortest and the longest window, in milliseconds. */
export const minLength = 100;
export const maxLength = 31 * 24 * 3_600_000;

/** A movable boundary. A rule is given by its index, from 1. */
export type Handle = "opens" | "starts" | "closes" | number;

/** The position of a handle. */
export function positionOf(plan: Plan, handle: Handle): number {
  if (handle === "opens") return plan.rules[0]!.from;
  if (handle === "starts" || handle === "closes") return plan[handle];
  return plan.rules[handle]!.from;
}

/** The moments between which a handle can move. It cannot pass `earliest`. */
export function bounds(plan: Plan, handle: Handle, earliest = 0): [least: number, most: number] {
  const { starts, closes, rules } = plan;
  const opens = rules[0]!.from;
  switch (handle) {
    case "opens":
      return [earliest, Math.min(starts, (rules[1]?.from ?? closes) - minLength)];
    case "starts": {
      const k = coupled(plan);
      const [least, most] = k > 0 ? bounds(plan, k, earliest) : [opens, never - 1];
      return closes === starts
        ? [Math.max(least, rules.at(-1)!.from + minLength), most]
        : [Math.max(least, opens), most];
    }
    case "closes": {
      const least = Math.max(rules.at(-1)!.from + minLength, earliest);
      return [closes === starts ? Math.max(least, opens) : least, never - 1];
    }
  }
  return [Math.max(rules[handle - 1]!.from + minLength, earliest), (rules[handle + 1]?.from ?? closes) - minLength];
}

/** The rule that begins at the start and moves with it; -1: none. */
function coupled({ starts, rules }: Plan): number {
  return rules.findIndex(({ from }, i) => i > 0 && from === starts);
}

/**
 * The plan with a handle at another time, or as near to it as allowed. A rule that begins with the start moves with
 * it, and a rule that was one draw stays one draw.
 */
export function move(plan: Plan, handle: Handle, to: number, earliest = 0): Plan {
  const [least, most] = bounds(plan, handle, earliest);
  const time = Math.min(Math.max(Math.round(to), least), Math.max(least, most));
  const rules = plan.rules.map((rule) => ({ ...rule }));
  const next = { starts: plan.starts, closes: plan.closes, rules };
  switch (handle) {
    case "opens":
      rules[0]!.from = time;
      break;
    case "starts": {
      const k = coupled(plan);
      if (k > 0) rules[k]!.from = time;
      next.starts = time;
      if (plan.closes === plan.starts) next.closes = time;
      break;
    }
    case "closes":
      next.closes = time;
      if (plan.closes === plan.starts) next.starts = time;
      break;
    default:
      rules[handle]!.from = time;
  }
  for (const [i, rule] of rules.entries()) {
    const was = gap(plan, i);
    if (plan.rules[i]!.length === was) rule.length = Math.min(Math.max(gap(next, i), minLength), maxLength);
  }
  return next;
}

/**
 * The plan after a time was typed; undefined if the time fits no plan. An opening after the start, or a start before
 * the opening, moves the whole room to another day.
 */
export function typed(plan: Plan, handle: Handle, time: number, earliest = 0): Plan | undefined {
  const [least, most] = bounds(plan, handle, earliest);
  if (time >= least && time <= most) return move(plan, handle, time, earliest);
  if ((handle === "opens" && time > most) || handle === "starts") return shift(plan, time - positionOf(plan, handle));
  return undefined;
}

/** The whole plan, moved. */
function shift({ starts, closes, rules }: Plan, by: number): Plan | undefined {
  const moved = {
    starts: starts + by,
    closes: closes === never ? never : closes + by,
    rules: rules.map(({ from, length }) => ({ from: from + by, length })),
  };
  return isPlan(moved) ? moved : undefined;
}

/** The duration of a rule. */
function gap({ rules, closes }: Plan, i: number): number {
  return (rules[i + 1]?.from ?? closes) - rules[i]!.from;
}

/** The visible range of a timeline. */
export interface View {
  from: number;
  to: number;
}

/** The view that shows all boundaries. */
export function wholeView({ starts, closes, rules }: Plan): View {
  const opens = rules[0]!.from;
  const last = rules.at(-1)!;
  const end = Math.max(starts, last.from, Math.min(last.from + 5 * last.length, last.from + 3_600_000));
  const span = Math.max(end - opens, 60_000);
  const to = closes <= end + 2 * span ? closes : end;
  const margin = Math.max(to - opens, 60_000) * 0.06;
  return { from: opens - margin, to: to + margin };
}

/** The view zoomed by a factor around a moment. */
export function zoom({ from, to }: View, factor: number, around: number): View {
  const span = Math.min(Math.max((to - from) * factor, 2000), 400 * 24 * 3_600_000);
  const share = Math.min(Math.max((around - from) / (to - from), 0), 1);
  return { from: around - share * span, to: around + (1 - share) * span };
}

/** A block of a drawing, in pixels: a window, or several that are too short to distinguish. */
export interface Block {
  x: number;
  width: number;
  many: boolean;
  odd: boolean; // alternates between neighbours
  late: boolean; // begins at the start or after it
}

const leastBlock = 3; // pixels

/** The windows in a view with that many pixels. */
export function blocks(plan: Plan, { from, to }: View, width: number): Block[] {
  const schedule = new Schedule(plan.rules, plan.closes);
  const scale = width / (to - from);
  const x = (time: number) => (time - from) * scale;
  const list: Block[] = [];
  let at = Math.max(Math.ceil(from), plan.rules[0]!.from);
  while (at < to) {
    const window = schedule.at(at);
    if (!window) break;
    const next = plan.rules.findIndex((r) => r.from > at);
    const rule = plan.rules.at(next < 0 ? -1 : next - 1)!;
    const end = next < 0 ? plan.closes : plan.rules[next]!.from;
    const many = rule.length * scale < leastBlock && end > window.to;
    const until = Math.min(many ? end : window.to, to);
    const begins = Math.max(many ? at : window.from, from);
    list.push({
      x: x(begins),
      width: x(until) - x(begins),
      many,
      odd: window.index % 2n === 1n,
      late: begins >= plan.starts,
    });
    at = Math.ceil(until);
  }
  return list;
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200,
];

/** The step, in milliseconds, of marks with that minimum distance in pixels. */
export function markStep({ from, to }: View, width: number, apart: number): number {
  const wanted = ((to - from) / width) * apart;
  return (steps.find((s) => s * 1000 >= wanted) ?? steps.at(-1)!) * 1000;
}

/** The step of a dragged handle: a tenth of what a finger can distinguish. */
export function snap(time: number, view: View, width: number): number {
  const step = Math.max(markStep(view, width, 2), 1000);
  return Math.round(time / step) * step;
}

/** The outline of a room that opens when it is published: its windows have no times yet. */
export const atOnce = "It opens when it is published. Enter an opening time to see its windows.";

/** Describes the number of windows in a sentence. */
export function summary(plan: Plan): string {
  if (!isPlan(plan)) return "The timeline cannot be drawn yet: see the problems at the fields.";
  const parts = plan.rules.map(({ length }, i) => {
    const n = Math.ceil(gap(plan, i) / length);
    const last = i === plan.rules.length - 1 && plan.closes === never;
    if (last) return `windows of ${writeLength(length)} without end`;
    return n === 1
      ? `one window of ${writeLength(Math.min(length, gap(plan, i)))}`
      : `${writeNumber(n)} windows of ${writeLength(length)}`;
  });
  const shown = parts.length > 6 ? [...parts.slice(0, 5), `${parts.length - 5} more rules`] : parts;
  const text = shown.join(", then ");
  const all = plan.closes === never ? "" : `: ${total(plan)} in all`;
  return `${text[0]!.toUpperCase()}${text.slice(1)}${plan.rules.length > 1 ? all : ""}.`;
}

function total(plan: Plan): string {
  return writeNumber(plan.rules.reduce((sum, { length }, i) => sum + Math.ceil(gap(plan, i) / length), 0));
}

/** A rule in the editor. */
export type { Plan, WindowRule };
