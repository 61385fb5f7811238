/**
 * The names under which an entry is refused: RULES.md section 4, and "form"
 * for what section 3 does not read as an entry at all.
 */
export type Rule =
  | "form"
  | "policy"
  | "time"
  | "end"
  | "arrival"
  | "ticket"
  | "lane"
  | "merit"
  | "freeze"
  | "proof"
  | "draw"
  | "beacon"
  | "witness"
  | "seed"
  | "assign"
  | "call"
  | "outflow"
  | "admission"
  | "skip"
  | "amend";

/** Thrown when an entry breaks a rule. It then has changed nothing. */
export class Refused extends Error {
  override name = "Refused";
  readonly rule: Rule;

  constructor(rule: Rule, why: string) {
    super(why);
    this.rule = rule;
  }
}

/** Refuses the entry unless a condition of the rule holds; why says what is wrong then. */
export function must(rule: Rule, holds: boolean, why: string): asserts holds {
  if (!holds) throw new Refused(rule, why);
}
