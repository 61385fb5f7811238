/**
 * The rules that an entry can break: those of RULES.md section 4, and "form" for
 * text that is not an entry by section 3.
 */
export type Rule =
  | "form"
  | "policy"
  | "time"
  | "end"
  | "arrival"
  | "ticket"
  | "lane"
  | "credential"
  | "nullifier"
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
  | "seats"
  | "extend"
  | "restore"
  | "admission"
  | "skip"
  | "amend";

/** Thrown when an entry breaks a rule. The entry has changed nothing. */
export class Refused extends Error {
  override name = "Refused";
  readonly rule: Rule;

  constructor(rule: Rule, why: string) {
    super(why);
    this.rule = rule;
  }
}

/** Refuses the entry unless a condition of the rule holds; why is the error text. */
export function must(rule: Rule, holds: boolean, why: string): asserts holds {
  if (!holds) throw new Refused(rule, why);
}
