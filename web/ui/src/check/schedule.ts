/** The closing time of a room that stays open until it is ended. */
export const never = 2 ** 53 - 1;

const minLength = 100; // milliseconds
const maxLength = 31 * 24 * 3600 * 1000;
const maxRules = 1000;

/** Opens windows of one length, in milliseconds, from a moment on until the next rule's moment or the close. */
export interface WindowRule {
  from: number;
  length: number;
}

/** A half-open interval [from, to) of arrival time whose arrivals are drawn together. */
export interface Window {
  index: bigint; // from 0, windows without arrivals included
  from: number;
  to: number;
}

/** Reports whether window rules are within their limits, ascend, and begin before the close. */
export function rulesAllowed(rules: readonly WindowRule[], closes: number): boolean {
  return (
    rules.length <= maxRules &&
    rules.every(
      ({ from, length }, i) =>
        length >= minLength && length <= maxLength && from < closes && (i === 0 || from > rules[i - 1]!.from),
    )
  );
}

/** What a policy says about windows, besides the rules. */
export interface Terms {
  opens: number;
  slots: number; // length of the first window's slots; 0: none
  notice: number;
}

/** Partitions the time from opening to close into windows. There is at least one rule. */
export class Schedule {
  readonly rules: readonly WindowRule[];
  readonly closes: number;

  constructor(rules: readonly WindowRule[], closes: number) {
    this.rules = rules;
    this.closes = closes;
  }

  /** The window a moment falls into; undefined before the opening and from the close on. */
  at(time: number): Window | undefined {
    let first = 0n; // index of the rule's first window
    for (const [i, rule] of this.rules.entries()) {
      if (time < rule.from) return undefined;
      const end = this.rules[i + 1]?.from ?? this.closes;
      if (time < end) {
        const passed = quotient(time - rule.from, rule.length);
        const from = rule.from + passed * rule.length;
        return { index: first + BigInt(passed), from, to: Math.min(from + rule.length, end) };
      }
      first += BigInt(quotient(end - rule.from - 1, rule.length) + 1); // the last one may be cut short
    }
    return undefined;
  }

  /**
   * The schedule after an amendment at some time, or undefined if the rules do not allow that one. Windows that begin
   * sooner than the policy's notice after it must stay as they are, and so must the first one if it has slots.
   */
  amended(
    { notice, slots }: Pick<Terms, "notice" | "slots">,
    time: number,
    rules: readonly WindowRule[],
    closes: number,
  ): Schedule | undefined {
    const opens = this.rules[0]!.from;
    const soon = time + notice - 1;
    const fixed = slots > 0 ? Math.max(soon, opens) : soon;
    const last = this.at(fixed);
    const earliest = last?.to ?? opens;
    const from = rules[0]?.from ?? never;
    if (fixed >= this.closes || closes <= opens || closes < earliest || from < earliest) return undefined;
    if (!rulesAllowed(rules, closes) || this.rules.length + rules.length > 2 * maxRules) return undefined;
    const all = [...this.rules.filter((rule) => rule.from < from), ...rules];
    const next = new Schedule(
      all.filter((rule, i) => i === 0 || rule.from < closes),
      closes,
    );
    const still = next.at(fixed);
    return !last || (still?.index === last.index && still.to === last.to) ? next : undefined;
  }
}

/** How many slots a window of a policy has. Only the first one may have several. */
export function slotsIn({ opens, slots, windows, closes }: Policy, window: bigint): number {
  if (slots === 0 || window > 0n) return 1;
  const first = new Schedule(windows, closes).at(opens)!;
  return quotient(first.to - first.from - 1, slots) + 1;
}

type Policy = Terms & { windows: readonly WindowRule[]; closes: number };

/** The slot of an arrival in a window, from 0. */
export function slotAt({ opens, slots }: Terms, window: bigint, time: number): number {
  return slots === 0 || window > 0n ? 0 : quotient(time - opens, slots);
}

/** Division of integers below 2^53, without the rest, exact where a / b would round up to the next integer. */
function quotient(a: number, b: number): number {
  return (a - (a % b)) / b;
}
