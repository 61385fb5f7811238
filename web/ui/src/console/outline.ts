// Describes what a room's times and windows mean for visitors, with examples. The server has the same texts
// in UTC (web/console/rooms/outline.go); both are tested against
// web/console/rooms/testdata/outlines.json.
import { never, rulesAllowed, type WindowRule } from "../check/schedule.ts";
import { writeLength } from "./lengths.ts";
import { months } from "./times.ts";

const mostRules = 12; // described in sentences
const second = 1000;
const minute = 60 * second;

/** Converts a moment to local time or to UTC. */
export type Clock = (time: number) => { day: string; time: string };

export const utcClock: Clock = (time) => {
  const at = new Date(time);
  const text = at
    .toISOString()
    .slice("2026-11-22T".length, -"Z".length)
    .replace(/\.000$/, "");
  return {
    day: `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}`,
    time: text.replace(/^(..:..):00$/, "$1"),
  };
};

export const localClock: Clock = (time) => utcClock(time - new Date(time).getTimezoneOffset() * minute);

/** A room's times. The first rule begins when it opens. */
export interface Plan {
  starts: number;
  closes: number; // or never
  rules: readonly WindowRule[];
}

/** Reports whether a room can have these windows. */
export function isPlan({ starts, closes, rules }: Plan): boolean {
  return (
    rules.length > 0 && rules.every(({ from }) => from >= 0) && starts >= rules[0]!.from && rulesAllowed(rules, closes)
  );
}

/** The sentences, or none if the times are invalid. */
export function outline(plan: Plan, clock: Clock): string[] {
  if (!isPlan(plan)) return [];
  const { starts, closes, rules } = plan;
  const today = clock(rules[0]!.from).day;
  const at = (time: number): string => {
    const { day, time: text } = clock(time);
    return day === today ? text : `${day}, ${text}`;
  };
  const list = [`Times without a date are those of ${today}.`, `Visitors can join from ${at(rules[0]!.from)} on.`];
  for (const [k, rule] of rules.slice(0, mostRules).entries()) {
    if (k > 0) list.push(`Visitors who join from ${at(rule.from)} on are behind everyone who joined before.`);
    list.push(...sentences(rule, rules[k + 1]?.from ?? closes, at));
  }
  if (rules.length > mostRules) list.push(`Rules that follow: ${rules.length - mostRules}.`);
  if (starts > rules[0]!.from) list.push(`Visitors are called from ${at(starts)} on.`);
  list.push(closes === never ? "Visitors can join until you end the room." : `Joining ends at ${at(closes)}.`);
  return list;
}

/** Describes the windows of a rule, which ends where the next one begins. */
function sentences({ from, length }: WindowRule, end: number, at: (time: number) => string): string[] {
  if (from + length >= end) {
    const { early, late } = examples(from, end);
    return [
      `From ${at(from)} to ${at(end)} there is one draw.`,
      `Join at ${at(early)} or at ${at(late)}: the same chance.`,
    ];
  }
  if (length < second) {
    return [
      `From ${at(from)} on it is first come, first served: only visitors who join within the same ${lengthWords(length)} are drawn together.`,
      `Join at ${at(from + second)} rather than at ${at(from + 2 * second)}: ahead. Programs are always faster than people here.`,
    ];
  }
  const { early, late, after } = examples(from, from + length);
  const list = [
    `From ${at(from)} on all visitors who join within the same ${lengthWords(length)} are drawn together.`,
    `Join at ${at(early)} or at ${at(late)}: the same chance. At ${at(after)}: after everyone ${windowWords(from, from + length, at)}.`,
  ];
  const rest = (end - from) % length;
  if (end !== never && rest !== 0)
    list.push(`The last of these windows is cut short at ${at(end)}: ${writeLength(rest)}.`);
  return list;
}

/** Two moments in a window and one after it, in whole seconds if the window is long enough. */
export function examples(from: number, to: number): { early: number; late: number; after: number } {
  const length = to - from;
  const unit = length >= 6 * second ? second : 1;
  const round = (time: number) => Math.floor(time / unit) * unit;
  return {
    early: from + round((length * 2) / 6),
    late: from + round((length * 5) / 6),
    after: to + Math.max(round(length / 60), unit),
  };
}

/** A window by name: a whole minute by its beginning. */
function windowWords(from: number, to: number, at: (time: number) => string): string {
  if (to - from === minute && from % minute === 0) return `of ${at(from)}`;
  return `from ${at(from)} to ${at(to)}`;
}

function lengthWords(length: number): string {
  if (length === second) return "second";
  if (length === minute) return "minute";
  if (length === 60 * minute) return "hour";
  return writeLength(length);
}
